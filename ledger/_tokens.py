"""
Bearer tokens: `ep_<tenant>_<secret>`, shown once, stored as a keyed digest.

The tenant stands in the token, so that it is looked up under that tenant's row level security and
nowhere else. The digest is keyed: a dump of the table lets nobody test a guess.
"""

from __future__ import annotations

import base64
import hmac
import re
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import sqlalchemy as sa

from contracts.claims import SELF
from contracts.errors import BadRequest, NotFound, Unauthenticated
from contracts.grants import Grant, Right
from contracts.limits import NAME_CHARACTERS_MAX
from ledger import _tables
from ledger._database import Database
from ledger._keys import TenantKeys
from ledger._tenants import tenant_keys

_SECRET_BYTES: Final = 32
_TOKEN: Final = re.compile(r"ep_(?P<tenant>[A-Za-z0-9][A-Za-z0-9._-]{0,62})_(?P<secret>[a-z2-7]{52})")
_GRANTED_MAX: Final = 256
"""Actors, or classes, that one token may list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRecord:
    """A token as stored: what it grants, not how to bear it. `token_id` revokes it."""

    token_id: str
    label: str
    grant: Grant
    created_at: datetime
    revoked_at: datetime | None


async def create_token(
    db: Database,
    tenant: str,
    *,
    rights: Collection[Right],
    actors: Collection[str],
    classes: Collection[str],
    label: str,
) -> str:
    """
    Make a token and return it; it cannot be shown again.

    Args:
        db: The database.
        tenant: The one tenant that it is good for.
        rights: What it may do.
        actors: Actor ids it may speak for, or `*`.
        classes: Source classes it may speak as, or `*`.
        label: For people.

    Raises:
        NotFound: No such tenant.
        BadRequest: No rights, the class `self`, or a list or label that is too long.
    """
    _check(rights=rights, actors=actors, classes=classes, label=label)
    keys = await tenant_keys(db, tenant)
    secret = base64.b32encode(db.randomness(_SECRET_BYTES)).decode("ascii").rstrip("=").lower()
    row = {
        "tenant": tenant,
        "token_digest": _digest(keys, secret),
        "label": label,
        "rights": sorted(rights),
        "actors": sorted(actors),
        "classes": sorted(classes),
        "created_at": db.clock(),
    }
    async with db.tenant(tenant) as conn:
        await conn.execute(sa.insert(_tables.token), row)
    return f"ep_{tenant}_{secret}"


async def find_grant(db: Database, bearer: str) -> Grant:
    """
    Return what a bearer token grants.

    Raises:
        Unauthenticated: Not a token, of no tenant, unknown or revoked; the four are not told apart.
    """
    match = _TOKEN.fullmatch(bearer)
    if match is None:
        raise Unauthenticated
    tenant, secret = match["tenant"], match["secret"]
    table = _tables.token
    async with db.tenant(tenant) as conn:
        try:
            digest = _digest(await tenant_keys(db, tenant, conn), secret)
        except NotFound:
            raise Unauthenticated from None
        query = sa.select(table).where(table.c.tenant == tenant, table.c.token_digest == digest)
        row = (await conn.execute(query)).one_or_none()
    # The index compared byte by byte, but a digest whose key the caller lacks: what its time tells
    # is about no token that anybody could choose. The comparison that admits takes constant time.
    if row is None or row.revoked_at is not None or not hmac.compare_digest(bytes(row.token_digest), digest):
        raise Unauthenticated
    return _grant(row)


async def list_tokens(db: Database, tenant: str) -> list[TokenRecord]:
    """Return the tenant's tokens, oldest first, revoked ones too."""
    table = _tables.token
    query = sa.select(table).where(table.c.tenant == tenant)
    async with db.tenant(tenant) as conn:
        rows = await conn.execute(query.order_by(table.c.created_at, table.c.token_digest))
        return [
            TokenRecord(
                token_id=bytes(row.token_digest).hex(),
                label=row.label,
                grant=_grant(row),
                created_at=row.created_at.astimezone(UTC),
                revoked_at=None if row.revoked_at is None else row.revoked_at.astimezone(UTC),
            )
            for row in rows
        ]


async def revoke_token(db: Database, tenant: str, token_id: str) -> None:
    """
    Revoke a token; from now on it grants nothing. Revoking twice changes nothing.

    Raises:
        NotFound: The tenant has no such token.
    """
    table = _tables.token
    try:
        digest = bytes.fromhex(token_id)
    except ValueError:
        raise NotFound(what="token") from None
    statement = (
        sa.update(table)
        .where(table.c.tenant == tenant, table.c.token_digest == digest)
        .values(revoked_at=sa.func.coalesce(table.c.revoked_at, db.clock()))
        .returning(table.c.token_digest)
    )
    async with db.tenant(tenant) as conn:
        if await conn.scalar(statement) is None:
            raise NotFound(what="token")


def _check(
    *, rights: Collection[Right], actors: Collection[str], classes: Collection[str], label: str
) -> None:
    if not rights:
        raise BadRequest(field="rights", reason="at least one is needed")
    if SELF in classes:
        raise BadRequest(field="classes", reason="`self` is computed and cannot be granted")
    if not label or len(label) > NAME_CHARACTERS_MAX or "\x00" in label:
        raise BadRequest(field="label", reason=f"1 to {NAME_CHARACTERS_MAX} characters")
    for field, names in (("actors", actors), ("classes", classes)):
        if len(names) > _GRANTED_MAX:
            raise BadRequest(field=field, reason=f"at most {_GRANTED_MAX}")
        if any(not name or len(name) > NAME_CHARACTERS_MAX or "\x00" in name for name in names):
            raise BadRequest(field=field, reason=f"each has 1 to {NAME_CHARACTERS_MAX} characters")


def _digest(keys: TenantKeys, secret: str) -> bytes:
    return keys.digest_of("token", secret.encode("ascii"))


def _grant(row: sa.Row[tuple[object, ...]]) -> Grant:
    return Grant(
        tenant=row.tenant,
        rights=frozenset(map(Right, row.rights)),
        actors=frozenset(row.actors),
        classes=frozenset(row.classes),
    )
