"""
Every value that crosses a boundary of the plane, the error tree, the limits and the ports.

Promises: pure values; importing this package connects to nothing and reads nothing. JSON Schemas
of everything a caller sends or receives are generated from it.
Does not promise: that a value is true, current or permitted. Those are `ledger`'s questions.

The doors are the modules listed in `__all__`; each owns one noun.
"""

__all__ = [
    "answers",
    "artifacts",
    "audit_wire",
    "claims",
    "context_wire",
    "contexts",
    "dead_wire",
    "discovery_wire",
    "epoch_wire",
    "erasure_wire",
    "erasures",
    "errors",
    "events",
    "gates",
    "grants",
    "histories",
    "identity",
    "lexicon",
    "limits",
    "log_wire",
    "models",
    "names",
    "ports",
    "proposals",
    "qa",
    "read_wire",
    "records",
    "relation_wire",
    "relations",
    "reports",
    "resolutions",
    "tenant_wire",
    "tenants",
    "times",
    "traces",
    "trails",
    "values",
    "views",
    "wire",
]
