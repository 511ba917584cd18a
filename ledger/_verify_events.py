"""Verification of single events: hash, header, payload, digests and targets."""

from __future__ import annotations

import hmac
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pydantic
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from contracts.errors import IntegrityFault
from contracts.events import EventDraft
from ledger import _tables
from ledger._canonical import canonical, parse
from ledger._drafts import targets_of
from ledger._events import StoredEvent, header_of, is_backfilled, open_payload
from ledger._hashes import event_hash
from ledger._keys import TenantKeys
from ledger._prepare import (
    content_digest,
    correlation_digest,
    idempotency_digest,
    source_digest,
    stream_digest,
)
from ledger._problems import Problems
from ledger._versions import lifted


@dataclass(slots=True, kw_only=True)
class EventChecks:
    """Checks pages of the log and counts what it saw."""

    keys: TenantKeys
    problems: Problems
    count: int = 0
    erased: int = 0
    live: bool = False

    async def check(self, conn: AsyncConnection, page: Sequence[StoredEvent]) -> None:
        """Check a page."""
        digests = await self._digests(conn, page)
        targets: dict[str, list[StoredEvent]] = {}
        for stored in page:
            self.count += 1
            if stored.wrapped_key is None:
                self.erased += 1
            if is_backfilled(stored.header) and self.live:
                self.problems.add("event.backfilled", _place(stored))
            self.live = self.live or not is_backfilled(stored.header)
            for check in self._bytes_of(stored):
                self.problems.add(check, _place(stored))
            for target in self._payload_of(stored, digests[stored.position]):
                targets.setdefault(target, []).append(stored)
        await self._targets_stand_earlier(conn, targets)

    def _bytes_of(self, stored: StoredEvent) -> Iterator[str]:
        if not hmac.compare_digest(event_hash(stored.header, stored.ciphertext), stored.hash):
            yield "event.hash"
        try:
            header = parse(stored.header)
            named = (header["id"], header["kind"])
        except (IntegrityFault, KeyError, TypeError):
            yield "event.header"
        else:
            if named != (stored.event_id, stored.kind):
                yield "event.header"

    def _payload_of(self, stored: StoredEvent, digests: Any) -> Iterator[str]:  # noqa: ANN401 - a row
        """Check what is encrypted, and yield the event ids that it targets."""
        if stored.wrapped_key is None:
            return
        try:
            key = self.keys.open_key(stored.event_id, stored.wrapped_key)
            payload = open_payload(self.keys, stored, key)
        except IntegrityFault:
            self.problems.add("event.payload", _place(stored))
            return
        try:
            version = parse(stored.header)["version"]
            draft = EventDraft.model_validate(lifted(version, payload)["draft"])
        except (IntegrityFault, LookupError, TypeError, pydantic.ValidationError):
            self.problems.add("event.draft", _place(stored))
            return
        for check in self._digests_of(draft, canonical(payload["draft"]), digests):
            self.problems.add(check, _place(stored))
        backfilled = is_backfilled(stored.header)
        if header_of(stored.event_id, draft, backfilled=backfilled, version=version) != stored.header:
            self.problems.add("event.header", _place(stored))
        for _, target in targets_of(draft):
            if target.event is not None:
                yield target.event
        yield from payload["references"].values()

    def _digests_of(
        self,
        draft: EventDraft,
        draft_bytes: bytes,
        digests: Any,  # noqa: ANN401 - a row
    ) -> Iterator[str]:
        named = draft.source_event_id
        source = None if named is None else source_digest(self.keys, draft.stream, named)
        expected = {
            "event.content": (content_digest(self.keys, draft_bytes), digests.content_digest),
            "event.stream": (stream_digest(self.keys, draft.stream), digests.stream_digest),
            "event.source": (source, digests.source_digest),
            "event.correlation": (
                None if draft.correlation is None else correlation_digest(self.keys, draft.correlation),
                digests.correlation_digest,
            ),
            "event.idempotency": (idempotency_digest(self.keys, draft, source), digests.idempotency_digest),
        }
        for check, (computed, stored) in expected.items():
            if computed != (None if stored is None else bytes(stored)):
                yield check

    async def _digests(self, conn: AsyncConnection, page: Sequence[StoredEvent]) -> dict[int, Any]:
        table = _tables.event
        query = sa.select(
            table.c.position,
            table.c.content_digest,
            table.c.stream_digest,
            table.c.source_digest,
            table.c.correlation_digest,
            table.c.idempotency_digest,
        ).where(
            table.c.tenant == self.keys.tenant,
            table.c.position.between(page[0].position, page[-1].position),
        )
        return {row.position: row for row in await conn.execute(query)}

    async def _targets_stand_earlier(
        self, conn: AsyncConnection, targets: dict[str, list[StoredEvent]]
    ) -> None:
        if not targets:
            return
        table = _tables.event
        query = (
            sa.select(table.c.event_id, table.c.position)
            .where(table.c.tenant == self.keys.tenant)
            .where(table.c.event_id == sa.any_(sa.literal(list(targets), sa.ARRAY(sa.Text))))
        )
        positions = {row.event_id: row.position for row in await conn.execute(query)}
        for target, holders in targets.items():
            for stored in holders:
                if not 0 < positions.get(target, 0) < stored.position:
                    self.problems.add("event.target", _place(stored))


def _place(stored: StoredEvent) -> str:
    return f"event {stored.event_id}"
