"""
Recall trails and replay: what checks the plane from outside.

Promises: it shares no code with the projection that it checks, nor with the packer whose hashes
it recomputes.
Does not promise: to repair what it finds.
"""

from audit._replay import replay

__all__ = ["replay"]
