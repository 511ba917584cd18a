"""Who is one with whom, asked like any key, and shown where it is open."""

from __future__ import annotations

from contracts.resolutions import Conflict, Missing, MissingReason, Resolved, ResolvedSet
from tests.ledger.test_resolve import ask, say  # noqa: F401 — a fixture

WHO = {"key": ("Bob", "same_as")}
WHO_NOT = {"key": ("Bob", "not_same_as")}


async def test_asking_who_an_entity_is_answers_its_other_names_with_their_claims(db, say):  # noqa: F811
    await say("ann", "Robert", **WHO)
    await say("ann", "Rob", key=("Robert", "same_as"))

    found = (await ask(db, "Bob", "same_as")).resolution

    assert isinstance(found, ResolvedSet)
    assert [member.value for member in found.members] == ["Rob", "Robert"]
    assert all(member.claims for member in found.members)
    assert found.disputed == ()


async def test_contested_identity_is_a_conflict_and_shown_with_what_is_said_of_the_entity(db, say):  # noqa: F811
    await say("ann", "Robert", **WHO)
    await say("eve", "Robert", **WHO_NOT)
    await say("ann", "Oslo", key=("Robert", "home"))

    found = (await ask(db, "Bob", "same_as")).resolution
    home = await ask(db, "Robert", "home")

    assert isinstance(found, Conflict)
    assert {(rival.value, rival.claim.source.actor_id) for rival in found.rivals} == {
        ("same_as", "ann"),
        ("not_same_as", "eve"),
    }
    assert isinstance(home.resolution, Resolved)
    assert {claim.source.actor_id for claim in home.disputes} == {"ann", "eve"}


async def test_a_component_that_a_pair_splits_is_a_conflict_for_each_of_its_names(db, say):  # noqa: F811
    await say("ann", "Robert", **WHO)
    await say("ann", "Rob", key=("Robert", "same_as"))
    await say("eve", "Rob", **WHO_NOT)

    for name in ("Bob", "Rob", "Robert"):
        found = (await ask(db, name, "same_as")).resolution
        assert isinstance(found, Conflict)
        assert {rival.value for rival in found.rivals} == {"same_as", "not_same_as"}


async def test_who_disputes_a_pair_is_shown_with_it_until_it_is_taken_back(db, say):  # noqa: F811
    said = await say("ann", "Robert", **WHO)
    target = {"event": said.event_ids[0]}
    await say("eve", stance="dispute", targets=[target])
    await say("bob", stance="retract", targets=[target])

    for name in ("Bob", "Robert"):
        found = await ask(db, name, "same_as")
        assert [claim.source.actor_id for claim in found.disputes] == ["eve", "bob"]
    assert (await ask(db, "Eve", "same_as")).disputes == ()

    await say("ann", stance="retract", targets=[target])

    assert (await ask(db, "Robert", "same_as")).disputes == ()


async def test_what_found_no_pair_to_act_on_is_reported_with_the_names_that_it_gives(db, say):  # noqa: F811
    said = await say("ann", "Robert", **WHO)
    await say("ann", "Rob", stance="retract", targets=[{"event": said.event_ids[0], "ordinal": 7}], **WHO)

    for name in ("Bob", "Rob"):
        assert [claim.stance for claim in (await ask(db, name, "same_as")).unplaced] == ["retract"]
    assert (await ask(db, "Eve", "same_as")).unplaced == ()


async def test_a_pair_taken_back_is_withdrawn_and_one_never_said_never_known(db, say):  # noqa: F811
    await say("ann", "Robert", **WHO)
    await say("ann", "Robert", stance="retract", **WHO)

    assert (await ask(db, "Bob", "same_as")).resolution == Missing(
        reason=MissingReason.WITHDRAWN, superseded=(), withdrawn=()
    )
    assert (await ask(db, "Eve", "same_as")).resolution == Missing(
        reason=MissingReason.NEVER_KNOWN, superseded=(), withdrawn=()
    )


async def test_a_pair_is_taken_back_by_naming_it_as_a_target(db, say):  # noqa: F811
    await say("ann", "Robert", **WHO)
    await say("ann", "Rob", **WHO)
    await say("ann", stance="retract", targets=[{"entity": "Robert", "relation": "same_as", "value": "Bob"}])

    found = (await ask(db, "Bob", "same_as")).resolution

    assert isinstance(found, ResolvedSet)
    assert [member.value for member in found.members] == ["Rob"]
