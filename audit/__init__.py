"""
Recall trails, replay, gates and benchmarks: what checks the plane from outside.

Promises: it shares no code with the projection that it checks.
Does not promise: to repair what it finds.
"""

__all__: list[str] = []
