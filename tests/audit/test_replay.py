"""Replay on a real database: everything the owner of the tables could change is found."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa

from audit import replay
from contracts.errors import NotFound
from contracts.events import EventDraft
from contracts.grants import LOCAL_GRANT
from contracts.proposals import Candidate, RouteHit
from contracts.relations import Cardinality, default_contract
from contracts.trails import PACKER_UNSAID, Question, Verdict
from contracts.views import ViewRequest
from discovery import propose_degraded
from echoplane._query import Asked, Path
from ledger import _trails, log
from ledger.write import fold, register_contract
from packing import ApproximateCounter
from projection import RuleProjector

TENANT = "acme"
NEWEST = ViewRequest(valid_at=None, known_at=None, generation=None, min_commit=None)
TEXTS = [
    ("I live in Boston.", [{"entity": "Ann", "relation": "lives_in", "value": "Boston"}]),
    ("The weather was fine on the harbour.", []),
    ("I moved to Lyon.", [{"entity": "Ann", "relation": "lives_in", "value": "Lyon"}]),
    ("Miso is my cat, and Otis my dog.", [
        {"entity": "Ann", "relation": "has_pet", "value": "Miso"},
        {"entity": "Ann", "relation": "has_pet", "value": "Otis"},
    ]),
]  # fmt: skip


class Ticking:
    """A clock that moves a minute at each reading."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.now += timedelta(minutes=1)
        return self.now


@dataclass(frozen=True)
class EverythingThere:
    """Discovery for a tenant so small that every event is worth a look. Plan and keys are the real ones."""

    database: log.Database

    async def propose(self, *, tenant, question, view):
        proposal = await propose_degraded(self.database, tenant=tenant, question=question, view=view)
        async with self.database.snapshot(tenant) as connection:
            keys = await log.tenant_keys(self.database, tenant, connection)
            events = await log.read_events(connection, keys, after_position=0, limit=100)
        candidates = tuple(
            Candidate(
                unit_id=event.event_id,
                event_ids=(event.event_id,),
                score_ppm=900_000 - event.position,
                hits=(RouteHit(route="all", rank=event.position, score_ppm=900_000 - event.position),),
            )
            for event in events
            if event.draft.text is not None
        )
        return replace(proposal, candidates=candidates)


@dataclass(frozen=True)
class Plane:
    """One tenant with four turns, the path that answers it, and its tables' owner."""

    database: log.Database
    path: Path
    owner: sa.ext.asyncio.AsyncEngine

    async def ask(self, text="Where does Ann live?", **fields) -> Asked:
        question = Question(text=text, **({"budget_tokens": 2_048, "disclose_conflicts": False} | fields))
        return await self.path.ask(TENANT, question, NEWEST, wait_ms=1_000)

    async def replay(self, asked: Asked):
        return await replay(self.path, self.database, TENANT, asked.pack.context_hash)

    async def change(self, *statements: str) -> None:
        """Do what no role of the plane may do."""
        async with self.owner.begin() as connection:
            await connection.execute(sa.text("SELECT set_config('echoplane.tenant', 'acme', true)"))
            for table in ("event", "claim", "cell", "commit", "trail", "context", "relation"):
                await connection.execute(sa.text(f'ALTER TABLE "{table}" DISABLE TRIGGER USER'))
            changed = [(await connection.execute(sa.text(statement))).rowcount for statement in statements]
            assert all(changed), "a statement that met no row would prove nothing"


async def say(database: log.Database, text: str, claims: list[dict[str, str]]) -> None:
    draft = {
        "stream": "chat-1",
        "kind": "turn",
        "actor": {"id": "Ann", "class": "user"},
        "observed_at": "2025-11-03T08:00:00+01:00",
        "text": text,
        "claims": claims,
    }
    await log.append(database, TENANT, [EventDraft.model_validate(draft)], grant=LOCAL_GRANT)


@pytest.fixture
async def plane(database, owner_engine) -> AsyncIterator[Plane]:
    made = log.open_database(
        plane_url=database.plane, relay_url=database.relay, master_key=bytes(range(32)), clock=Ticking()
    )
    await log.create_tenant(made, TENANT)
    await register_contract(
        made,
        TENANT,
        default_contract("has_pet", cardinality=Cardinality.MANY),
        stream="contracts",
        actor_id="operator",
        grant=LOCAL_GRANT,
    )
    for text, claims in TEXTS:
        await say(made, text, claims)
    await fold(made, TENANT, RuleProjector(), events_max=100)
    path = Path(
        database=made,
        discovery=EverythingThere(made),
        counter=ApproximateCounter(),
        configuration_hash="0" * 64,
    )
    yield Plane(made, path, owner_engine)
    await made.close()


@pytest.mark.parametrize(
    ("text", "status", "value"),
    [
        ("Where does Ann live?", "answered", "Lyon"),
        ("How many pets does Ann have?", "answered", 2),
        ("What was said about the weather?", "evidence", None),
    ],
)
async def test_what_was_answered_replays_identically(plane, text, status, value):
    asked = await plane.ask(text)

    report = await plane.replay(asked)

    assert (asked.answer.status, asked.answer.value) == (status, value)
    assert (report.verdict, report.differences) == (Verdict.IDENTICAL, ())
    assert report.replayed_hash == asked.pack.context_hash


@pytest.mark.parametrize("budget_tokens", [1, 40, 90, 200])
async def test_contexts_of_every_size_replay_identically(plane, budget_tokens):
    report = await plane.replay(await plane.ask(budget_tokens=budget_tokens))

    assert report.verdict == Verdict.IDENTICAL


async def test_a_context_that_was_packed_before_lines_shared_their_days_replays_to_its_own_bytes(
    plane, monkeypatch
):
    asked = await plane.ask("What was said about the weather?")
    rebuilt = await plane.path.rebuild(tenant=TENANT, trail=replace(asked.trail, packer=PACKER_UNSAID))
    before = replace(
        asked.trail,
        trail_id="before",
        context_hash=rebuilt.pack.context_hash,
        answer_digest=rebuilt.answer_digest,
    )
    body = _trails._body
    monkeypatch.setattr(
        _trails, "_body", lambda trail: {k: v for k, v in body(trail).items() if k != "packer"}
    )
    await log.store_recall(plane.database, TENANT, before, rebuilt.pack)

    report = await replay(plane.path, plane.database, TENANT, before.context_hash)

    assert (report.verdict, report.differences) == (Verdict.IDENTICAL, ())
    assert before.context_hash != asked.pack.context_hash
    assert all(" Nov 2025 08:00+01 " in line.rendered for line in rebuilt.pack.lines)
    assert sum(" Nov 2025 08:00+01 " in line.rendered for line in asked.pack.lines) == 1


async def test_what_is_learned_later_does_not_change_what_was_answered(plane):
    asked = await plane.ask()
    await say(plane.database, "Oslo!", [{"entity": "Ann", "relation": "lives_in", "value": "Oslo"}])
    await fold(plane.database, TENANT, RuleProjector(), events_max=100)

    assert (await plane.ask()).answer.value == "Oslo"
    assert (await plane.replay(asked)).verdict == Verdict.IDENTICAL


def flipped(column):
    """The assignment that turns one bit in the middle of a column."""
    middle = f"length({column}) / 2"
    return f"{column} = set_byte({column}, {middle}, get_byte({column}, {middle}) # 1)"


# Position 1 is the registration of has_pet; 2 to 5 are the four turns.
CHANGES = {
    "event payload": f"UPDATE event SET {flipped('ciphertext')} WHERE position = 4",
    "event payload, superseded": f"UPDATE event SET {flipped('ciphertext')} WHERE position = 2",
    "event payload, of no claim": f"UPDATE event SET {flipped('ciphertext')} WHERE position = 3",
    "event header": f"UPDATE event SET {flipped('header')} WHERE position = 4",
    "event hash": f"UPDATE event SET {flipped('hash')} WHERE position = 4",
    "event kind": "UPDATE event SET kind = 'observation' WHERE position = 4",
    "event data key": (
        f"UPDATE event_key SET {flipped('wrapped_key')} WHERE event_id = "
        "(SELECT event_id FROM event WHERE position = 4)"
    ),
    "commit's clock": "UPDATE commit SET recorded_at = recorded_at + interval '1 us' WHERE commit = 4",
    "claim body": f"UPDATE claim SET {flipped('body')} WHERE position = 4",
    "claim body, superseded": f"UPDATE claim SET {flipped('body')} WHERE position = 2",
    "claim body, of another key": f"UPDATE claim SET {flipped('body')} WHERE position = 5",
    "claim seal": f"UPDATE claim SET {flipped('seal')} WHERE position = 4",
    "claim commit": "UPDATE claim SET commit = commit - 1 WHERE position = 4",
    "claim stance": "UPDATE claim SET stance = 'end' WHERE position = 4",
    "claim entity": "UPDATE claim SET entity = 'Bob' WHERE position = 4",
    "contract": f"UPDATE relation SET {flipped('contract')} WHERE relation = 'has_pet'",
    "contract seal": f"UPDATE relation SET {flipped('seal')} WHERE relation = 'has_pet'",
    "context form": f"UPDATE context SET {flipped('ciphertext')}",
    "context content hash": "UPDATE context SET content_hash = repeat('0', 64)",
    "context key": f"UPDATE context_key SET {flipped('wrapped_key')}",
    "context key gone": "DELETE FROM context_key",
    "trail body": f"UPDATE trail SET {flipped('body')}",
    "trail question and candidates": f"UPDATE trail SET {flipped('ciphertext')}",
    "trail seal": f"UPDATE trail SET {flipped('seal')}",
    "trail clock": "UPDATE trail SET asked_at = asked_at + interval '1 us'",
    "trail key": f"UPDATE trail_key SET {flipped('wrapped_key')}",
    "trail key gone": "DELETE FROM trail_key",
}


@pytest.mark.parametrize("statement", CHANGES.values(), ids=CHANGES)
async def test_any_changed_byte_is_a_mismatch_that_names_the_part(plane, statement):
    text = "How many pets does Ann have?" if "relation SET" in statement else "Where does Ann live?"
    asked = await plane.ask(text)
    await plane.change(statement)

    report = await plane.replay(asked)

    assert report.verdict == Verdict.MISMATCH
    assert report.differences
    assert "Lyon" not in str(report)


async def test_another_candidate_list_under_valid_seals_is_a_mismatch(plane):
    """Whoever holds the keys can store any trail; the hash that was handed out still tells."""
    asked = await plane.ask()
    await plane.change("DELETE FROM trail_key", "DELETE FROM trail")
    proposal = asked.trail.proposal
    for number, changed in enumerate([
        replace(proposal, candidates=proposal.candidates[:-1]),
        replace(proposal, candidates=proposal.candidates[::-1]),
        replace(proposal, keys=()),
        replace(proposal, plan=replace(proposal.plan, surface="list")),
    ]):  # fmt: skip
        trail = replace(asked.trail, proposal=changed, trail_id=f"forged-{number}")
        await log.store_recall(plane.database, TENANT, trail, asked.pack)

        report = await plane.replay(asked)
        await plane.change("DELETE FROM trail_key", "DELETE FROM trail")

        assert report.verdict == Verdict.MISMATCH
        assert report.replayed_hash != asked.pack.context_hash


async def test_another_question_or_view_under_valid_seals_is_a_mismatch(plane):
    asked = await plane.ask()
    trail = asked.trail
    for number, changed in enumerate([
        replace(trail, question=replace(trail.question, text="Where does Ann work?")),
        replace(trail, question=replace(trail.question, budget_tokens=2_049)),
        replace(trail, view=replace(trail.view, cut=trail.view.cut - 1)),
        replace(trail, view=replace(trail.view, valid_at=trail.view.valid_at - timedelta(seconds=1))),
        replace(trail, configuration_hash="1" * 64),
        replace(trail, answer_digest="00"),
    ]):  # fmt: skip
        await plane.change("DELETE FROM trail_key", "DELETE FROM trail")
        forged = replace(changed, trail_id=f"forged-{number}")
        await log.store_recall(plane.database, TENANT, forged, asked.pack)

        assert (await plane.replay(asked)).verdict == Verdict.MISMATCH


async def test_an_event_whose_key_was_erased_redacts_its_line_and_is_named(plane):
    asked = await plane.ask()
    (weather,) = (line.event_id for line in asked.pack.lines if "weather" in line.text)
    await plane.change(f"DELETE FROM event_key WHERE event_id = '{weather}'")

    report = await plane.replay(asked)

    assert (report.verdict, report.erased_event_ids) == (Verdict.REDACTED, (weather,))


async def test_an_erasure_does_not_excuse_a_change_beside_it(plane):
    asked = await plane.ask()
    await plane.change(
        "DELETE FROM event_key WHERE event_id = (SELECT event_id FROM event WHERE position = 3)",
        "UPDATE commit SET recorded_at = recorded_at + interval '1 us' WHERE commit = 4",
    )

    assert (await plane.replay(asked)).verdict == Verdict.MISMATCH


async def test_cells_that_say_something_else_are_a_mismatch(plane):
    asked = await plane.ask()
    await plane.change("UPDATE cell SET state = 'ended' WHERE state = 'value'")

    assert (await plane.replay(asked)).verdict == Verdict.MISMATCH


async def test_a_context_that_was_never_stored_is_not_found(plane):
    with pytest.raises(NotFound):
        await replay(plane.path, plane.database, TENANT, "0" * 64)


async def test_a_context_is_not_found_in_another_tenant(plane):
    asked = await plane.ask()
    await log.create_tenant(plane.database, "other")

    with pytest.raises(NotFound):
        await replay(plane.path, plane.database, "other", asked.pack.context_hash)
