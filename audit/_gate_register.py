"""
The register of gates: a file of lines, each with the digest of the one before it, and only ever longer.

A line that is changed, moved or taken out breaks every line after it. Lines cut off at the end leave
no trace in the file itself: the bundles that gates leave behind, and the repository, remember them.
"""

from __future__ import annotations

import fcntl
import gzip
import hashlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from audit._bundle_files import address_of, canonical, records_of, write_whole
from contracts.artifacts import Sha256
from contracts.errors import BadRequest, RunRefused
from contracts.gates import FIRST, Entry, EntryKind, Gate, Outcome
from contracts.ports import Clock
from contracts.times import format_instant

_REGISTER: Final = "register.jsonl"
_NEXT: Final = {
    None: {EntryKind.REGISTERED},
    EntryKind.REGISTERED: {EntryKind.BEGUN, EntryKind.SKIPPED},
    EntryKind.BEGUN: {EntryKind.SEALED, EntryKind.SKIPPED},
    EntryKind.SEALED: {EntryKind.OPENED},
    EntryKind.OPENED: {EntryKind.OUTCOME},
    EntryKind.OUTCOME: set(),
    EntryKind.SKIPPED: set(),
}


class GateRegister:
    """
    The gates of one folder: `NAME.json`, `NAME.outcome.json`, and the register of what became of them.

    Reading it checks the whole chain.

    Raises:
        RunRefused: A line is not what it was.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.entries = self._read()

    def _read(self) -> list[Entry]:
        entries, lost = records_of(self._whole_lines(), Entry, name=_REGISTER)
        if lost:
            raise RunRefused(what=f"the register, line {lost[0].line}", reason="not such a record")
        _check_chain(entries)
        return entries

    def _whole_lines(self) -> bytes:
        """Return the file up to its last line end: what follows was cut off while it was written."""
        path = self.folder / _REGISTER
        raw = path.read_bytes() if path.exists() else b""
        return raw[: raw.rfind(b"\n") + 1]

    def of(self, name: str) -> list[Entry]:
        """Return what happened to a gate, in order; nothing where it was never registered."""
        return [entry for entry in self.entries if entry.gate == name]

    def names(self) -> list[str]:
        """Return every gate that was registered, in that order."""
        return list(dict.fromkeys(entry.gate for entry in self.entries))

    def state(self, name: str) -> EntryKind | None:
        """Return how far a gate has come."""
        entries = self.of(name)
        return entries[-1].kind if entries else None

    def append(self, kind: EntryKind, gate: Gate, *, clock: Clock, **said: Any) -> Entry:  # noqa: ANN401 - an entry's fields
        """
        Write one more line, on the disk when this returns.

        Raises:
            RunRefused: That cannot happen to this gate now.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / _REGISTER).open("ab") as file:
            # Gates may be run side by side: what another has written meanwhile comes before.
            fcntl.flock(file, fcntl.LOCK_EX)
            self.entries = self._read()
            # What was cut off was never said to be written; on it, this line would be none.
            file.truncate(len(self._whole_lines()))
            os.fsync(file.fileno())
            entry = self._next(kind, gate, at=format_instant(clock()), said=said)
            file.write(canonical(entry) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        self.entries.append(entry)
        return entry

    def _next(self, kind: EntryKind, gate: Gate, *, at: str, said: dict[str, Any]) -> Entry:
        if kind not in _NEXT[self.state(gate.name)]:
            state = _said(self.state(gate.name))
            raise RunRefused(what=f"gate {gate.name}", reason=f"it is {state}, so it cannot be {kind.value}")
        entry = Entry(
            number=len(self.entries) + 1,
            previous=self.entries[-1].digest if self.entries else FIRST,
            at=at,
            kind=kind,
            gate=gate.name,
            gate_sha256=address_of(gate),
            digest=FIRST,
            **said,
        )
        return entry.model_copy(update={"digest": _digest(entry)})

    def read_gate(self, name: str) -> Gate:
        """
        Read a gate's file and hold it against the register.

        Raises:
            RunRefused: It was never registered, or is not the file that was.
        """
        entries = self.of(name)
        if not entries:
            raise RunRefused(what=f"gate {name}", reason="it was never registered")
        gate = read_gate_file(self.folder / f"{name}.json")
        if address_of(gate) != entries[0].gate_sha256:
            raise RunRefused(what=f"gate {name}", reason="its file is not the one that was registered")
        return gate

    def write_outcome(self, outcome: Outcome) -> Sha256:
        """Write down how a gate ended, and return the digest of that."""
        write_whole(self.folder / f"{outcome.gate}.outcome.json", canonical(outcome))
        return address_of(outcome)

    def read_outcome(self, name: str) -> Outcome | None:
        """
        Return how a gate ended, None where it has not.

        Raises:
            RunRefused: The outcome is not the one that was written down.
        """
        entry = next((one for one in self.of(name) if one.kind is EntryKind.OUTCOME), None)
        if entry is None:
            return None
        try:
            outcome = Outcome.model_validate_json((self.folder / f"{name}.outcome.json").read_bytes())
        except (OSError, ValueError) as error:
            raise RunRefused(what=f"gate {name}", reason="its outcome cannot be read") from error
        if address_of(outcome) != entry.outcome or outcome.passed is not entry.passed:
            raise RunRefused(what=f"gate {name}", reason="its outcome is not the one that was written down")
        return outcome

    def opened(self, contents: Iterable[str]) -> list[Entry]:
        """Return when gold of any of these files was read, by content."""
        wanted = set(contents)
        return [entry for entry in self.entries if wanted & set(entry.opened)]


def read_gate_file(path: Path) -> Gate:
    """
    Read a gate's file.

    Raises:
        BadRequest: It cannot be read, or is no gate; says which field.
    """
    try:
        return Gate.model_validate_json(path.read_bytes())
    except OSError as error:
        raise BadRequest(field=path.name, reason=f"cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise BadRequest(field=path.name, reason=f"is no gate: {str(error)[:500]}") from error


def content_digests(path: Path) -> tuple[str, ...]:
    """
    Return the digest of what each file of a data set holds, unpacked: packing one anew makes no other set.

    Raises:
        BadRequest: One cannot be read.
    """
    files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
    found = []
    for file in files:
        try:
            raw = file.read_bytes()
            found.append(hashlib.sha256(gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw).hexdigest())
        except (OSError, EOFError) as error:
            raise BadRequest(field=file.name, reason=f"cannot be read: {error}") from error
    return tuple(sorted(set(found)))


def _check_chain(entries: list[Entry]) -> None:
    previous, states = FIRST, dict[str, EntryKind]()
    for number, entry in enumerate(entries, start=1):
        sound = entry.number == number and entry.previous == previous and entry.digest == _digest(entry)
        if not sound or entry.kind not in _NEXT[states.get(entry.gate)]:
            raise RunRefused(what="the register", reason=f"line {number} is not what was written there")
        previous, states[entry.gate] = entry.digest, entry.kind


def _digest(entry: Entry) -> str:
    return address_of(entry.model_copy(update={"digest": FIRST}))


def _said(state: EntryKind | None) -> str:
    return "not registered" if state is None else f"{state.value} already"
