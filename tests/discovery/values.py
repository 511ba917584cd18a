"""What the tests of discovery emit, ask and look at."""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import sqlalchemy as sa

from contracts.claims import Claim, Position, ProjectedClaim, Source, Validity, ValidityKind
from contracts.events import Event, EventDraft, Stance
from contracts.grants import LOCAL_GRANT
from contracts.proposals import Proposal
from contracts.times import KnownAt, ValidAt, parse_term
from contracts.trails import Question
from contracts.views import View
from discovery._text import terms
from ledger import log
from ledger._claims import claim_id_of, row_of
from ledger._reading import claims_of
from ledger._relations import Contracts

NOW = datetime(2026, 3, 18, 12, tzinfo=UTC)
EPOCH = 1


class WordEmbedder:
    """A real, small embedder: each stem points in a direction of its own, a text in their sum's."""

    def __init__(self, *, model_digest: str = "words:1", dimensions: int = 384) -> None:
        self.model_digest = model_digest
        self.dimensions = dimensions
        self.embedded: list[str] = []

    def embed(self, texts: Sequence[str]):
        self.embedded += texts
        rows = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        for row, text in enumerate(texts):
            for term in terms(text) or ["\0"]:
                seed = int.from_bytes(hashlib.sha256(term.encode()).digest()[:8])
                rows[row] += np.random.default_rng(seed).standard_normal(self.dimensions).astype(np.float32)
            rows[row] /= np.linalg.norm(rows[row])
        return rows


def turn(text: str | None = None, *, actor: str = "Ann", class_: str = "user", **fields: Any) -> EventDraft:
    form = {
        "stream": "chat",
        "kind": "turn",
        "actor": {"id": actor, "class": class_},
        "observed_at": "2026-03-01T10:00:00Z",
    }
    return EventDraft.model_validate(form | ({} if text is None else {"text": text}) | fields)


def event(draft: EventDraft, position: int, *, commit: int | None = None) -> Event:
    """An event as the log would give it back."""
    return Event(
        backfilled=False,
        sent_at=None,
        event_id=f"ev{position:04}",
        position=position,
        commit=commit or position,
        recorded_at=KnownAt(NOW),
        observed=parse_term(draft.observed_at, field="observed_at"),
        draft=draft,
    )


def claim(
    entity: str, relation: str, value: Any, position: int, *, actor: str = "Ann", epoch: int = EPOCH
) -> Claim:
    """A claim as the ledger would give it back; its event is `ev<position>`."""
    return Claim(
        claim_id=f"{position:04}",
        epoch=epoch,
        entity=entity,
        relation=relation,
        value=value,
        stance=Stance.ASSERT,
        validity=Validity(kind=ValidityKind.SINCE, start=NOW, end=None, earliest=NOW, timeless=False),
        source=Source(actor_id=actor, actor_class="user"),
        position=Position(event=position, ordinal=0),
        commit=position,
        event_id=f"ev{position:04}",
        recorded_at=KnownAt(NOW),
        observed_at=NOW,
        spans=(),
        occurrence_id=None,
        targets=(),
        winner=None,
        inputs=(),
    )


def question(text: str) -> Question:
    return Question(text=text, budget_tokens=2_048, disclose_conflicts=False)


def view(cut: int, *, epoch: int = EPOCH) -> View:
    return View(valid_at=ValidAt(NOW), known_at=KnownAt(NOW), cut=cut, epoch=epoch)


async def emit(db: log.Database, *drafts: EventDraft, tenant: str = "acme") -> list[str]:
    """Append each draft as a commit of its own; return the event ids."""
    receipts = [await log.append(db, tenant, [draft], grant=LOCAL_GRANT) for draft in drafts]
    return [event_id for receipt in receipts for event_id in receipt.event_ids]


async def project(db: log.Database, tenant: str = "acme") -> int:
    """Write the structured claims of the whole log as the record of the serving epoch; return the cut."""
    async with db.tenant(tenant) as conn:
        keys = await log.tenant_keys(db, tenant, conn)
        head, generation = await log.head(conn), await log.serving(conn)
        done = generation.commit
        for logged in await log.read_events(conn, keys, after_position=0, limit=1_000):
            if logged.commit <= done or not isinstance(logged, Event):
                continue
            projected = [
                ProjectedClaim(ordinal=ordinal, draft=draft, stance=logged.draft.stance_of(draft), spans=())
                for ordinal, draft in enumerate(logged.draft.claims)
            ]
            for made in claims_of(
                logged,
                projected,
                epoch=generation.epoch,
                contracts=Contracts(registered={}),
                claim_id=lambda ordinal, event_id=logged.event_id: claim_id_of(
                    keys, tenant=tenant, event_id=event_id, ordinal=ordinal, epoch=generation.epoch
                ),
                event_id_of=lambda _: None,
            ):
                row = row_of(made, tenant=tenant, keys=keys)
                names = ", ".join(row)
                marks = ", ".join(f":{name}" for name in row)
                await conn.execute(sa.text(f"INSERT INTO claim ({names}) VALUES ({marks})"), row)
        await conn.execute(
            sa.text("UPDATE epoch SET commit = :commit, position = :position"),
            {"commit": head.commit, "position": head.position},
        )
        return head.commit


def timeless(proposal: Proposal) -> Proposal:
    """The proposal without what a clock measured."""
    return dataclasses.replace(
        proposal, routes=tuple(dataclasses.replace(route, duration_us=0) for route in proposal.routes)
    )


def found(proposal: Proposal) -> list[str]:
    return [candidate.unit_id for candidate in proposal.candidates]


def route(proposal: Proposal, name: str):
    (report,) = [report for report in proposal.routes if report.route == name]
    return report


async def embedded(client, count: int):
    """Wait until the service holds so many units, each with its vector."""
    async with asyncio.timeout(60):
        while True:
            health = await client.health()
            if health.units >= count and health.units_without_vector == 0 and health.model_digest:
                return health
            await asyncio.sleep(0.02)
