"""Which process of the service has a tenant, where there are several."""

from __future__ import annotations

import hashlib


def shard_of(tenant: str, shards: int) -> int:
    """Return the number, from 0, of the process that has a tenant: the same in every process and release."""
    return int.from_bytes(hashlib.sha256(tenant.encode()).digest()[:8]) % shards
