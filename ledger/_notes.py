"""
Checkpoints: how a log stood, signed, as the signed notes of transparency logs have it (C2SP).

    echoplane/acme              the log: `echoplane/` and the tenant
    12                          commits
    hR3…=                       root of the tree over them, base64
                                an empty line, then the signature
    — echoplane/acme A9…=       of all above: key id (4 bytes) and Ed25519 (64 bytes), base64

A note has one form: what differs in a single byte is another note, or none. A public key is written
as `NAME+KEY ID+KEY`, as the same convention has it, so that other programs can check our notes.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from dataclasses import dataclass, field
from typing import Final, Self

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from contracts.errors import BadRequest

SIGNING_KEY_BYTES: Final = 32
_ORIGIN: Final = "echoplane/"
_ED25519: Final = b"\x01"
_KEY_ID_BYTES: Final = 4
_TENANT: Final = r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}"
_NOTE: Final = re.compile(
    rf"(?P<text>{_ORIGIN}(?P<tenant>{_TENANT})\n(?P<size>0|[1-9][0-9]{{0,17}})\n(?P<root>[A-Za-z0-9+/]{{43}}=)\n)"
    r"\n— (?P<name>[^ +\n]+) (?P<signature>[A-Za-z0-9+/]{91}=)\n",
    flags=re.ASCII,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A log of so many commits had this root. Commit 0 is the empty log."""

    tenant: str
    size: int
    root: bytes

    @property
    def text(self) -> str:
        """What is signed."""
        return f"{_ORIGIN}{self.tenant}\n{self.size}\n{_encoded(self.root)}\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicKey:
    """What proves that a checkpoint of a tenant's log was signed by the plane that keeps it."""

    tenant: str
    _key: bytes = field(repr=False)

    @classmethod
    def parse(cls, text: str) -> Self:
        """
        Read a key in the form of `str`.

        Raises:
            BadRequest: It is none, or its id is not its own.
        """
        name, _, rest = text.partition("+")
        _, _, key = rest.partition("+")
        tenant = name.removeprefix(_ORIGIN)
        raw = _decoded(key) or b""
        if raw[:1] == _ED25519 and len(raw) == 1 + SIGNING_KEY_BYTES and re.fullmatch(_TENANT, tenant):
            found = cls(tenant=tenant, _key=raw[1:])
            if str(found) == text:
                return found
        raise BadRequest(field="key", reason="expected a public key, as `echoplane checkpoint` prints it")

    def __str__(self) -> str:
        """Return `NAME+KEY ID+KEY`."""
        return f"{_ORIGIN}{self.tenant}+{self.key_id.hex()}+{_encoded(_ED25519 + self._key)}"

    @property
    def key_id(self) -> bytes:
        """The first bytes of a digest of name and key."""
        named = f"{_ORIGIN}{self.tenant}\n".encode() + _ED25519 + self._key
        return hashlib.sha256(named).digest()[:_KEY_ID_BYTES]

    def open(self, note: str) -> Checkpoint | None:
        """Return what a note says, None if it is no note or this key's tenant did not sign it."""
        found = _NOTE.fullmatch(note)
        if found is None:
            return None
        root, signed = _decoded(found["root"]), _decoded(found["signature"])
        own = f"{_ORIGIN}{self.tenant}"
        if root is None or signed is None or not found["name"] == f"{_ORIGIN}{found['tenant']}" == own:
            return None
        if not hmac.compare_digest(signed[:_KEY_ID_BYTES], self.key_id):
            return None
        try:
            Ed25519PublicKey.from_public_bytes(self._key).verify(
                signed[_KEY_ID_BYTES:], found["text"].encode()
            )
        except (InvalidSignature, ValueError):
            return None
        return Checkpoint(tenant=found["tenant"], size=int(found["size"]), root=root)


@dataclass(frozen=True, slots=True, kw_only=True)
class SigningKey:
    """The plane's own key (32 bytes), by which it signs the checkpoints of all tenants."""

    _seed: bytes = field(repr=False)

    @classmethod
    def of(cls, seed: bytes) -> Self:
        """
        Return the key of a seed.

        Raises:
            ValueError: It is not 32 bytes.
        """
        if len(seed) != SIGNING_KEY_BYTES:
            raise ValueError(f"a signing key has {SIGNING_KEY_BYTES} bytes, given {len(seed)}")
        return cls(_seed=seed)

    def public(self, tenant: str) -> PublicKey:
        """Return what a tenant's checkpoints are checked with."""
        return PublicKey(tenant=tenant, _key=self._key().public_key().public_bytes_raw())

    def sign(self, checkpoint: Checkpoint) -> str:
        """Return the signed note; the same one for the same checkpoint."""
        signed = self.public(checkpoint.tenant).key_id + self._key().sign(checkpoint.text.encode())
        return f"{checkpoint.text}\n— {_ORIGIN}{checkpoint.tenant} {_encoded(signed)}\n"

    def _key(self) -> Ed25519PrivateKey:
        return Ed25519PrivateKey.from_private_bytes(self._seed)


def _encoded(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def _decoded(text: str) -> bytes | None:
    """Return what was encoded, None if it was not encoded so: the last character has bits to spare."""
    try:
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    return raw if _encoded(raw) == text else None
