"""
The service that proposes where evidence may be: ids and scores, never a decision.

Promises: every candidate names its route, and every route its index generation.
Does not promise: truth, currentness or completeness. The ledger re-reads all it proposes.
"""

__all__: list[str] = []
