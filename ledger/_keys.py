"""
Keys: the master key wraps a tenant's keys, and of those and a secret of its own is each event's data key.

All encryption is AES-256-GCM, all digests HMAC-SHA256. What wraps or encrypts is derived anew for
each use (by key id), so no nonce can ever meet its like under one key. A secret is 32 random bytes:
without the tenant's keys it tells nothing, and they make nothing without it. Losing it erases what its
data key encrypted, and every digest that it keyed says nothing any more.
"""

from __future__ import annotations

import hmac
import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.hmac import HMAC

from contracts.errors import IntegrityFault

_length: Final = struct.Struct(">Q").pack

KEY_BYTES: Final = 32
_NONCE_BYTES: Final = 12

Randomness = Callable[[int], bytes]
"""Returns that many bytes which nobody can guess."""


def framed(*parts: bytes) -> bytes:
    """Join parts, each with its length before it: no two lists of parts give the same bytes."""
    match parts:
        # Most are one or two.
        case (part,):
            return _length(len(part)) + part
        case (part, other):
            return b"".join((_length(len(part)), part, _length(len(other)), other))
        case _:
            return b"".join([_length(len(part)) + part for part in parts])


class _Mac:
    """
    HMAC-SHA256 under one key, with some parts before all others: both are worked out once.

    A fold makes several digests of each claim under one key; begun anew, each takes twice as long. The
    standard library's takes half as long again, most of it to copy what was begun.
    """

    __slots__ = ("_begun",)

    def __init__(self, key: bytes, *first: bytes) -> None:
        self._begun = HMAC(key, SHA256())
        self._begun.update(framed(*first))

    def digest(self, *parts: bytes) -> bytes:
        """Return the digest of these parts, each framed, after those that stand first."""
        begun = self._begun.copy()
        if len(parts) == 1:
            # Most have one.
            begun.update(_length(len(parts[0])) + parts[0])
        else:
            begun.update(framed(*parts))
        return begun.finalize()

    def digests(self, parts: Iterable[bytes]) -> list[bytes]:
        """Return the digest of each part, as `digest` of it alone."""
        return self.framed_digests([_length(len(part)) + part for part in parts])

    def framed_digests(self, texts: Iterable[bytes]) -> list[bytes]:
        """Return the digest of each text that parts were framed to, as `digest` of those parts."""
        begin, found = self._begun.copy, []
        for text in texts:
            begun = begin()
            begun.update(text)
            found.append(begun.finalize())
        return found


def _hmac(key: bytes, *parts: bytes) -> bytes:
    return hmac.digest(key, framed(*parts), "sha256")


def _seal(key: bytes, plain: bytes, context: bytes, randomness: Randomness) -> bytes:
    nonce = randomness(_NONCE_BYTES)
    return nonce + AESGCM(key).encrypt(nonce, plain, context)


def _open(key: bytes, sealed: bytes, context: bytes, *, what: str) -> bytes:
    try:
        return AESGCM(key).decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], context)
    except (InvalidTag, ValueError) as error:
        raise IntegrityFault(what=what) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class EventKey:
    """The data key of one event (or trail, or context): encrypts its payload, keys its digests."""

    _encrypts: bytes = field(repr=False)
    _digests: bytes = field(repr=False)

    def encrypt(self, plain: bytes, *, context: bytes, randomness: Randomness) -> bytes:
        """Encrypt, bound to `context`: bytes that are kept in clear and must not be exchanged."""
        return _seal(self._encrypts, plain, context, randomness)

    def decrypt(self, sealed: bytes, *, context: bytes, what: str) -> bytes:
        """
        Decrypt what `encrypt` made with the same `context`.

        Raises:
            IntegrityFault: A byte of either was changed; `what` names it.
        """
        return _open(self._encrypts, sealed, context, what=what)

    def digest(self, data: bytes) -> bytes:
        """Return a digest (32 bytes) that only a holder of this key can compute or test."""
        return _hmac(self._digests, b"digest", data)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, weakref_slot=True)
class TenantKeys:
    """One tenant's keys, unwrapped: in memory only. What is kept in memory of a tenant is kept by them."""

    tenant: str
    _wrapping_key: bytes = field(repr=False)
    _digest_key: bytes = field(repr=False)
    _wraps: _Mac = field(init=False, repr=False)
    _encrypting: _Mac = field(init=False, repr=False)
    _digesting: _Mac = field(init=False, repr=False)
    _digests: _Mac = field(init=False, repr=False)
    _plain_digests: _Mac = field(init=False, repr=False)
    # One for each purpose that somebody asked for.
    _purposes: dict[str, _Mac] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        # A frozen instance is filled in so.
        object.__setattr__(self, "_digests", _Mac(self._digest_key))
        object.__setattr__(self, "_plain_digests", _Mac(self._digest_key, b"digest"))
        object.__setattr__(self, "_purposes", {})
        for name, purpose in (("_wraps", b"wrap"), ("_encrypting", b"encrypt"), ("_digesting", b"digest")):
            object.__setattr__(self, name, _Mac(self._wrapping_key, purpose, self.tenant.encode()))

    def digest(self, data: bytes) -> bytes:
        """Return a digest (32 bytes) keyed with the tenant's digest key."""
        return self._plain_digests.digest(data)

    def digests(self, texts: Iterable[bytes]) -> list[bytes]:
        """Return the digest of each, as `digest` does."""
        return self._plain_digests.digests(texts)

    def digest_of(self, purpose: str, *parts: bytes) -> bytes:
        """Return a keyed digest of several parts, which no other purpose can produce."""
        return self._purpose(purpose).digest(*parts)

    def digests_of(self, purpose: str, texts: Iterable[bytes]) -> list[bytes]:
        """Return the digest of each text that parts were framed to, as `digest_of` those parts."""
        return self._purpose(purpose).framed_digests(texts)

    def _purpose(self, purpose: str) -> _Mac:
        begun = self._purposes.get(purpose)
        if begun is None:
            begun = self._purposes[purpose] = _Mac(self._digest_key, b"digest of", purpose.encode())
        return begun

    def seal(self, table: str, *columns: bytes) -> bytes:
        """Return the seal (32 bytes) of a row: a keyed digest of all its other columns, in order."""
        return self._digests.digest(b"seal", table.encode(), *columns)

    def seals(self, table: str, rows: Iterable[bytes]) -> list[bytes]:
        """Return the seal of each row, as `seal` does; given are its columns framed."""
        first = framed(b"seal", table.encode())
        return self._digests.framed_digests([first + row for row in rows])

    def new_key(self, key_id: str, *, randomness: Randomness) -> tuple[EventKey, bytes]:
        """Make the data key of `key_id`, and the secret that it is made of, for its table."""
        secret = randomness(KEY_BYTES)
        return self.open_key(key_id, secret), secret

    def encrypt_under_new(
        self,
        key_ids: Sequence[bytes],
        plains: Sequence[bytes],
        contexts: Sequence[bytes],
        *,
        randomness: Randomness,
    ) -> tuple[list[bytes], list[bytes]]:
        """
        Encrypt each under the data key of its `key_id`, made for it: return their secrets, and the rest.

        As `new_key` and `EventKey.encrypt`, one kind of work after the other: in turns each takes longer.
        """
        size = KEY_BYTES + _NONCE_BYTES
        held = randomness(size * len(plains))
        secrets = [held[start : start + KEY_BYTES] for start in range(0, len(held), size)]
        nonces = [held[start : start + _NONCE_BYTES] for start in range(KEY_BYTES, len(held), size)]
        keys = self._encrypting.framed_digests(map(framed, key_ids, secrets))
        return secrets, [
            nonce + AESGCM(key).encrypt(nonce, plain, context)
            for key, nonce, plain, context in zip(keys, nonces, plains, contexts, strict=True)
        ]

    def open_key(self, key_id: str, secret: bytes) -> EventKey:
        """
        Return the data key of `key_id`; with a changed secret, or another's, it opens nothing.

        Raises:
            IntegrityFault: It is no secret; or, of a key that was wrapped, that was changed or is another's.
        """
        named = key_id.encode()
        if len(secret) == KEY_BYTES:
            return EventKey(
                _encrypts=self._encrypting.digest(named, secret),
                _digests=self._digesting.digest(named, secret),
            )
        # Up to event version 2 the key itself was random, and stored wrapped.
        key = _open(self._wraps.digest(named), secret, b"", what=f"key of {key_id}")
        return EventKey(_encrypts=_hmac(key, b"encrypt"), _digests=key)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRing:
    """The master key (32 bytes). It is in no table; whoever restores a backup needs it."""

    _master_key: bytes = field(repr=False)

    def new_tenant(self, tenant: str, *, randomness: Randomness) -> bytes:
        """Make a tenant's keys and return them wrapped."""
        return _seal(self._wrapping(tenant), randomness(2 * KEY_BYTES), b"", randomness)

    def open_tenant(self, tenant: str, wrapped: bytes) -> TenantKeys:
        """
        Unwrap a tenant's keys.

        Raises:
            IntegrityFault: They were changed, or wrapped by another master key.
        """
        keys = _open(self._wrapping(tenant), wrapped, b"", what="tenant keys (or another master key)")
        return TenantKeys(tenant=tenant, _wrapping_key=keys[:KEY_BYTES], _digest_key=keys[KEY_BYTES:])

    def adopt(self, tenant: str, wrapped: bytes, *, of: KeyRing, randomness: Randomness) -> bytes:
        """
        Wrap the keys of a tenant that another ring wrapped.

        Raises:
            IntegrityFault: They were changed, or wrapped by a third.
        """
        keys = _open(of._wrapping(tenant), wrapped, b"", what="tenant keys (or another master key)")
        return _seal(self._wrapping(tenant), keys, b"", randomness)

    def _wrapping(self, tenant: str) -> bytes:
        return _hmac(self._master_key, b"wrap tenant", tenant.encode())


def key_ring(master_key: bytes) -> KeyRing:
    """
    Return the key ring of a master key.

    Raises:
        ValueError: It is not 32 bytes.
    """
    if len(master_key) != KEY_BYTES:
        raise ValueError(f"the master key has {KEY_BYTES} bytes, given {len(master_key)}")
    return KeyRing(_master_key=master_key)
