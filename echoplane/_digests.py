"""Keyed digests for packing: the keys are read first, so that packing does no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from contracts.errors import IntegrityFault
from ledger.log import EventKey, TenantKeys


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedDigests:
    """Implements `contracts.ports.Digests` over keys that were read in the question's snapshot."""

    tenant: TenantKeys = field(repr=False)
    events: Mapping[str, EventKey] = field(repr=False)

    def of_event(self, event_id: str, data: bytes) -> str:
        key = self.events.get(event_id)
        if key is None:
            raise IntegrityFault(what="event_key")
        return key.digest(data).hex()

    def of_tenant(self, data: bytes) -> str:
        return self.tenant.digest(data).hex()
