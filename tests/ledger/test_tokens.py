"""A token grants what it was made for, in its own tenant, until it is revoked."""

from __future__ import annotations

import pytest

from contracts.errors import BadRequest, NotFound, Unauthenticated
from contracts.grants import Grant, Right
from ledger import log
from tests.ledger.log_drafts import as_owner


async def token(db, tenant: str = "acme", **changes) -> str:
    fields = {
        "rights": {Right.EMIT, Right.ASK},
        "actors": {"ann"},
        "classes": {"user"},
        "label": "ann's phone",
    }
    return await log.create_token(db, tenant, **(fields | changes))


async def test_a_token_grants_what_it_was_made_for(db):
    bearer = await token(db)

    assert bearer.startswith("ep_acme_")
    assert await log.find_grant(db, bearer) == Grant(
        tenant="acme",
        rights=frozenset({Right.EMIT, Right.ASK}),
        actors=frozenset({"ann"}),
        classes=frozenset({"user"}),
    )


async def test_a_tenants_name_may_hold_what_separates_the_parts_of_a_token(db):
    await log.create_tenant(db, "a_b_c")

    assert (await log.find_grant(db, await token(db, "a_b_c"))).tenant == "a_b_c"


async def test_two_tokens_are_never_the_same(db):
    assert await token(db) != await token(db)


async def test_what_is_not_a_token_is_not_let_in(db):
    await log.create_tenant(db, "other")
    bearer = await token(db)
    secret = bearer.removeprefix("ep_acme_")
    changed = secret[:-1] + ("a" if secret[-1] != "a" else "b")

    for wrong in (
        "", "ep_", "ep_acme_", "ep_acme", bearer.upper(), bearer + "a", f" {bearer}", f"{bearer}\n",
        f"ep_acme_{changed}", f"ep_other_{secret}", f"ep_nobody_{secret}", f"ep_acme_{'a' * 52}",
    ):  # fmt: skip
        with pytest.raises(Unauthenticated):
            await log.find_grant(db, wrong)


async def test_a_revoked_token_grants_nothing_and_stays_listed(db, clock):
    bearer, other = await token(db, label="one"), await token(db, label="two")
    listed = {record.label: record for record in await log.list_tokens(db, "acme")}

    await log.revoke_token(db, "acme", listed["one"].token_id)
    await log.revoke_token(db, "acme", listed["one"].token_id)

    with pytest.raises(Unauthenticated):
        await log.find_grant(db, bearer)
    assert (await log.find_grant(db, other)).tenant == "acme"
    revoked = {record.label: record.revoked_at for record in await log.list_tokens(db, "acme")}
    assert revoked == {"one": clock.now, "two": None}


async def test_a_token_of_another_tenant_is_neither_listed_nor_revoked(db):
    await log.create_tenant(db, "other")
    bearer = await token(db)
    (record,) = await log.list_tokens(db, "acme")

    assert await log.list_tokens(db, "other") == []
    for token_id in (record.token_id, "no hex", ""):
        with pytest.raises(NotFound):
            await log.revoke_token(db, "other", token_id)
    assert (await log.find_grant(db, bearer)).tenant == "acme"


async def test_the_secret_is_not_stored(db, owner_engine):
    bearer = await token(db)
    secret = bearer.removeprefix("ep_acme_")

    ((row,),) = await as_owner(owner_engine, "SELECT t::text FROM token AS t")
    assert secret not in row
    assert secret.encode().hex() not in row


NOT_TO_BE_GRANTED = [
    ("rights", set()),
    ("classes", {"self"}),
    ("classes", {""}),
    ("actors", {"x" * 513}),
    ("actors", {"\x00"}),
    ("actors", {str(number) for number in range(257)}),
    ("label", ""),
    ("label", "x" * 513),
]


async def test_what_cannot_be_granted_is_refused(db):
    for field, value in NOT_TO_BE_GRANTED:
        with pytest.raises(BadRequest) as refused:
            await token(db, **{field: value})

        assert refused.value.field == field, (field, value)


async def test_a_token_needs_a_tenant(db):
    with pytest.raises(NotFound):
        await token(db, "nobody")
