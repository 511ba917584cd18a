"""
A measured question answering run: read every cell, seal, and only then open gold and judge.

The folder of a run holds words (questions, contexts, answers) and stays where it was made. A run that
was cut off goes on: a cell that was read is not read again, and a line that was cut off is kept as
what failed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final, TypeAlias, TypeVar

from pydantic import BaseModel

from audit._bundle_files import canonical, read_lines, salvage, write_lines, write_whole
from audit._judge import judge, response_digest
from audit._objective import objectives
from contracts.errors import BadRequest, RunRefused
from contracts.models import LanguageModel, Reading, ReadingStatus
from contracts.qa import QA_FORM, Judgement, Objective, QaCell, QaGold, QaResponse, QaSeal, Weights

CONTEXTS: Final = "contexts.jsonl"
RESPONSES: Final = "responses.jsonl"
CUT_OFF: Final = "cut-off.jsonl"
SEAL: Final = "seal.json"
JUDGEMENTS: Final = "judgements.jsonl"
OBJECTIVE: Final = "objective.jsonl"

Record = TypeVar("Record", bound=BaseModel)

Read: TypeAlias = Callable[[str, str], Awaitable[Reading]]
"""A reader: question and rendered lines in, what came of it out."""


def read_contexts(path: Path) -> list[QaCell]:
    """
    Read the contexts of a run, one cell a line.

    Raises:
        BadRequest: It is not there, or a line is no cell; says which.
    """
    return read_lines(path, QaCell)


def read_gold(path: Path) -> list[QaGold]:
    """
    Read what is right for each question, one a line.

    Raises:
        BadRequest: It is not there, or a line is none; says which.
    """
    return read_lines(path, QaGold)


def write_gold(path: Path, gold: Sequence[QaGold]) -> None:
    """Write what is right for each question, one a line."""
    write_lines(path, gold)


async def read_cells(
    folder: Path, cells: Sequence[QaCell], read: Read, *, reader: str, reader_sha256: str, prompt_sha256: str
) -> QaSeal:
    """
    Have every cell read, and seal what was said.

    Raises:
        RunRefused: The folder holds another run, or one that was sealed over other bytes.
        BadRequest: A cell stands twice.
    """
    said = _begin(folder, cells)
    if said is None:
        return check_seal(folder)
    for cell in cells:
        if cell.key not in said:
            said[cell.key] = await _read(cell, read)
            _keep(folder / RESPONSES, said[cell.key])
    # Every cell is kept, in the order of the cells.
    write_lines(folder / RESPONSES, [said[cell.key] for cell in cells])
    seal = QaSeal(
        form=QA_FORM,
        cells=len(cells),
        contexts_sha256=_digest(folder / CONTEXTS),
        responses_sha256=_digest(folder / RESPONSES),
        reader=reader,
        reader_sha256=reader_sha256,
        prompt_sha256=prompt_sha256,
    )
    write_whole(folder / SEAL, canonical(seal) + b"\n")
    return seal


async def judge_run(
    folder: Path, gold: Sequence[QaGold], model: LanguageModel, *, weights: Weights
) -> list[Objective]:
    """
    Judge a sealed run, and compute the objective of every arm under every budget.

    Raises:
        RunRefused: It is not sealed, or what was sealed was changed since.
        BadRequest: Gold is missing for a question, or stands twice.
    """
    check_seal(folder)
    cells = {cell.key: cell for cell in read_lines(folder / CONTEXTS, QaCell)}
    responses = read_lines(folder / RESPONSES, QaResponse)
    answers = {one.question: one for one in gold}
    if len(answers) < len(gold) or any(response.question not in answers for response in responses):
        raise BadRequest(field="gold", reason="each question of the run stands in it once")
    judged = {(one.question, one.response_sha256): one for one in _salvaged(folder / JUDGEMENTS, Judgement)}
    for response in responses:
        reference = answers[response.question].answer
        if response.status != ReadingStatus.ANSWERED or response.text is None or reference is None:
            # Scored by rule: it abstained or failed, or there was nothing to answer.
            continue
        pair = response.question, response_digest(response.text)
        if pair not in judged:
            judged[pair] = await judge(
                model,
                question_id=response.question,
                question=cells[response.key].text,
                reference=reference,
                response=response.text,
            )
            _keep(folder / JUDGEMENTS, judged[pair])
    found = objectives(responses, answers, judged, weights=weights)
    write_lines(folder / OBJECTIVE, found)
    return found


def check_seal(folder: Path) -> QaSeal:
    """
    Return the seal of a run.

    Raises:
        RunRefused: There is none, or what was sealed was changed since.
    """
    try:
        seal = QaSeal.model_validate_json((folder / SEAL).read_bytes())
        found = (_digest(folder / CONTEXTS), _digest(folder / RESPONSES))
    except (OSError, ValueError) as error:
        raise RunRefused(what="this run", reason="is not sealed: gold stays closed") from error
    if found != (seal.contexts_sha256, seal.responses_sha256):
        raise RunRefused(what="this run", reason="was changed after it was sealed")
    return seal


async def _read(cell: QaCell, read: Read) -> QaResponse:
    rendered = "".join(f"{line}\n" for line in cell.lines)
    reading = await read(cell.text, rendered)
    return QaResponse(
        question=cell.question,
        arm=cell.arm,
        budget=cell.budget,
        context_sha256=hashlib.sha256(rendered.encode()).hexdigest(),
        tokens=cell.tokens,
        status=reading.status,
        text=reading.text,
        grounded=reading.grounded,
        failure=reading.failure,
        output=reading.output,
    )


def _begin(folder: Path, cells: Sequence[QaCell]) -> dict[tuple[str, str, int], QaResponse] | None:
    """Freeze the cells, and return what was read of them already; None where all of it is sealed."""
    if len({cell.key for cell in cells}) < len(cells):
        raise BadRequest(field="contexts", reason="a cell stands twice")
    folder.mkdir(parents=True, exist_ok=True)
    contexts = b"".join(canonical(cell) + b"\n" for cell in cells)
    if not (folder / CONTEXTS).exists():
        write_whole(folder / CONTEXTS, contexts)
    if (folder / CONTEXTS).read_bytes() != contexts:
        raise RunRefused(what="this folder", reason="holds a run over other contexts")
    if (folder / SEAL).exists():
        return None
    return {response.key: response for response in _salvaged(folder / RESPONSES, QaResponse)}


def _salvaged(path: Path, model: type[Record]) -> list[Record]:
    """Return the whole records of a file; what was cut off is kept beside it, as what failed."""
    if not path.exists():
        return []
    kept, lost = salvage(path, model)
    if lost:
        with (path.parent / CUT_OFF).open("ab") as file:
            file.write(b"".join(canonical(one) + b"\n" for one in lost))
        write_lines(path, kept)
    return kept


def _keep(path: Path, record: BaseModel) -> None:
    with path.open("ab") as file:
        file.write(canonical(record) + b"\n")


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
