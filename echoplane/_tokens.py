"""
Who is calling: the local token of this data folder, or a token of one tenant.

The local token is made at the first start, lies in a file of mode 0600 and may do everything in
every tenant. It is compared, never stored in the database.
"""

from __future__ import annotations

import contextlib
import hmac
import os
import secrets
import stat
from typing import Final

from contracts.errors import Forbidden, NotFound, Unauthenticated, Unavailable
from contracts.grants import Grant, Right
from echoplane._folders import DataFolder

LOCAL_TOKEN_FILE: Final = "local.token"  # noqa: S105 - the name of a file
_PREFIX: Final = "ep_local_"


def ensure_local_token(folder: DataFolder) -> str:
    """
    Return the folder's token, made if there is none.

    Raises:
        Unavailable: Others may read the file.
    """
    path = folder.keys / LOCAL_TOKEN_FILE
    if not path.exists():
        beside = path.with_name(f".{path.name}.{os.getpid()}")
        beside.unlink(missing_ok=True)
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(_PREFIX + secrets.token_urlsafe(32) + "\n")
        # A link, not a rename: of two first starts at once, both must use the token of the first.
        with contextlib.suppress(FileExistsError):
            path.hardlink_to(beside)
        beside.unlink()
    if stat.S_IMODE(path.stat().st_mode) & 0o077:
        raise Unavailable(part="token", reason=f"{path} can be read by others (chmod 600)")
    return path.read_text(encoding="ascii").strip()


def bearer_of(header: str | None) -> str:
    """
    Return the token of an `Authorization` header.

    Raises:
        Unauthenticated: There is none.
    """
    scheme, _, token = (header or "").partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise Unauthenticated
    return token.strip()


def is_local(bearer: str, local_token: str) -> bool:
    """Compare in constant time."""
    return hmac.compare_digest(bearer.encode(), local_token.encode())


def demand(grant: Grant, *, tenant: str, right: Right) -> None:
    """
    Refuse what a token does not grant.

    Raises:
        NotFound: Its tenant is another; the same whether or not this one exists.
        Forbidden: It lacks the right.
    """
    if grant.tenant is not None and grant.tenant != tenant:
        raise NotFound(what="tenant")
    if right not in grant.rights:
        raise Forbidden(needs=f"the right {right.value}")
