"""The use cases of checkpoints and proofs: to make them, to write them down, and to check them elsewhere."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import BinaryIO, Final

from pydantic import TypeAdapter, ValidationError

from contracts.errors import BadRequest
from contracts.limits import EXPORT_LINE_BYTES_MAX
from contracts.log_wire import (
    CheckedAnswer,
    CheckpointAnswer,
    CommitAnswer,
    CommitsAnswer,
    ConsistencyAnswer,
    InclusionAnswer,
)
from echoplane._folders import DataFolder
from echoplane._keys import load_checkpoint_key
from echoplane._wiring import Plane
from ledger.log import (
    Checkpoint,
    Consistency,
    ExportedHead,
    Inclusion,
    Problems,
    PublicKey,
    SigningKey,
    check_consistency,
    check_export,
    check_inclusion,
    commit_form,
    commit_line,
    commit_of,
    commits_up_to,
    open_note,
    read_checkpoint,
    read_commits,
    read_consistency,
    read_inclusion,
)

_PROOF: Final = TypeAdapter[InclusionAnswer | ConsistencyAnswer](InclusionAnswer | ConsistencyAnswer)


async def checkpoint(plane: Plane, tenant: str, *, size: int | None) -> CheckpointAnswer:
    """Sign how a log stood at so many commits, or stands now."""
    found = await read_checkpoint(plane.database, tenant, size=size)
    key = _key(plane)
    return CheckpointAnswer(
        tenant=tenant,
        size=found.size,
        root=found.root.hex(),
        note=key.sign(found),
        key=str(key.public(tenant)),
    )


async def commits(plane: Plane, tenant: str, *, after_commit: int, limit: int) -> CommitsAnswer:
    """Return commits in order, a page at most."""
    async with plane.long_reads.of(tenant):
        found = await read_commits(plane.database, tenant, after_commit=after_commit, limit=limit)
    return CommitsAnswer(tenant=tenant, commits=[CommitAnswer(**commit_form(one)) for one in found])


async def inclusion(plane: Plane, tenant: str, commit: int, *, size: int | None) -> InclusionAnswer:
    """Prove that a commit is in the log."""
    found = await read_inclusion(plane.database, tenant, commit, size=size)
    return InclusionAnswer(
        kind="inclusion",
        tenant=tenant,
        size=found.size,
        commit=CommitAnswer(**commit_form(found.commit)),
        path=[one.hex() for one in found.path],
    )


async def consistency(plane: Plane, tenant: str, *, old: int, new: int | None) -> ConsistencyAnswer:
    """Prove that the log begins as it once was."""
    found = await read_consistency(plane.database, tenant, old=old, new=new)
    return ConsistencyAnswer(
        kind="consistency",
        tenant=tenant,
        size=found.size,
        note=_key(plane).sign(found.later),
        path=[one.hex() for one in found.path],
    )


async def export_lines(plane: Plane, answer: CheckpointAnswer, *, with_commits: bool) -> AsyncIterator[bytes]:
    """Yield the lines of a file that `check_file` checks."""
    yield ExportedHead(note=answer.note, key=answer.key).line()
    if with_commits:
        async for commit in commits_up_to(plane.database, answer.tenant, answer.size):
            yield commit_line(commit)


def read_checkpoint_file(path: Path, key: str | None) -> Checkpoint:
    """
    Return the checkpoint of a file, signed by the key given, or by the one that the file names.

    Raises:
        BadRequest: There is no such file, or it holds none that is so signed.
    """
    with _opened(path) as file:
        head = ExportedHead.read(file.readline(EXPORT_LINE_BYTES_MAX))
    problems = Problems()
    found = open_note(head, None if key is None else PublicKey.parse(key), problems)
    if found is None or problems.count:
        raise BadRequest(field="checkpoint", reason="; ".join(str(one) for one in problems.listed))
    return found


def check_file(path: Path, key: str | None, proofs: Sequence[Path]) -> CheckedAnswer:
    """
    Check an exported log, and proofs against its checkpoint. Asks no plane and no database.

    Raises:
        BadRequest: A file is not there or is none of ours, or there is nothing to check.
    """
    trusted = None if key is None else PublicKey.parse(key)
    with _opened(path) as file:
        named = ExportedHead.read(file.readline(EXPORT_LINE_BYTES_MAX)).key
        file.seek(0)
        report = check_export(iter(lambda: file.readline(EXPORT_LINE_BYTES_MAX), b""), trusted)
    if not (report.commits or proofs) and report.checkpoint is not None and report.checkpoint.size:
        raise BadRequest(field="checkpoint", reason="is alone: name a tenant, or a proof, to hold it against")
    for proof in proofs:
        _check_proof(proof, report.checkpoint, trusted or PublicKey.parse(named), report.problems)
    return CheckedAnswer(
        tenant=None if report.checkpoint is None else report.checkpoint.tenant,
        ok=report.intact,
        size=None if report.checkpoint is None else report.checkpoint.size,
        root=None if report.checkpoint is None else report.checkpoint.root.hex(),
        key=key or named,
        pinned=key is not None,
        commits=report.commits,
        events=report.events,
        proofs=len(proofs),
        problems=[str(problem) for problem in report.problems.listed],
        problems_count=report.problems.count,
    )


def _check_proof(path: Path, checkpoint: Checkpoint | None, key: PublicKey, problems: Problems) -> None:
    if checkpoint is None:
        return
    with _opened(path) as file:
        raw = file.read(EXPORT_LINE_BYTES_MAX)
    try:
        proof = _PROOF.validate_json(raw)
        if proof.tenant != checkpoint.tenant:
            problems.add("proof.tenant", path.name)
        hashes = tuple(bytes.fromhex(one) for one in proof.path)
        if isinstance(proof, InclusionAnswer):
            commit = commit_of(proof.commit.model_dump())
            check_inclusion(Inclusion(commit=commit, size=proof.size, path=hashes), checkpoint, problems)
            return
    except (ValidationError, BadRequest):
        problems.add("proof.form", path.name)
        return
    later = key.open(proof.note)
    if later is None:
        problems.add("proof.signature", path.name)
    else:
        check_consistency(Consistency(size=proof.size, later=later, path=hashes), checkpoint, problems)


def _opened(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except OSError as error:
        raise BadRequest(field=str(path), reason=f"cannot be read: {error.strerror}") from error


def _key(plane: Plane) -> SigningKey:
    return SigningKey.of(load_checkpoint_key(plane.settings, DataFolder.at(plane.settings.data_dir)))
