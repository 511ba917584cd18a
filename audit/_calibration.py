"""
A blinded packet for people to label, and how far their labels agree with each other and the judge.

Items are shuffled and carry no arm, no budget and no verdict; what each stands for stays with the run.
A response that several arms gave is one item.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from audit._bundle_files import read_lines, write_lines
from audit._judge import response_digest
from audit._qa import CONTEXTS, JUDGEMENTS, RESPONSES, check_seal
from contracts.errors import BadRequest
from contracts.limits import RESAMPLES_DEFAULT
from contracts.models import ReadingStatus
from contracts.qa import Agreement, Judgement, PacketItem, PacketKey, QaCell, QaGold, QaResponse, Verdict

KEY: Final = "packet-key.jsonl"
JUDGE: Final = "judge"


def make_packet(
    folder: Path, gold: Sequence[QaGold], out: Path, *, questions: int, budget: int
) -> list[PacketItem]:
    """
    Write a packet of so many questions with the response of every arm under one budget.

    Which questions, and in what order, hangs on the seal of the run alone: nobody chooses.

    Raises:
        RunRefused: The run is not sealed, or was changed since.
        BadRequest: It is not judged, has not so many questions that were answered, or not that budget.
    """
    seal = check_seal(folder).responses_sha256
    cells = {cell.key: cell for cell in read_lines(folder / CONTEXTS, QaCell)}
    references = {one.question: one.answer for one in gold}
    verdicts = {(one.question, one.response_sha256): one.verdict for one in _judgements(folder)}
    items: dict[tuple[str, str], list[QaResponse]] = {}
    for response in read_lines(folder / RESPONSES, QaResponse):
        answered = response.status == ReadingStatus.ANSWERED and response.text is not None
        if response.budget == budget and answered and references.get(response.question) is not None:
            pair = response.question, response_digest(response.text or "")
            items.setdefault(pair, []).append(response)
    drawn = sorted({question for question, _ in items}, key=lambda question: _draw(seal, question))
    if len(drawn) < questions:
        reason = f"the run has {len(drawn)} questions that were answered and judged under that budget"
        raise BadRequest(field="questions", reason=reason)
    if any(pair not in verdicts for pair in items):
        raise BadRequest(field="run", reason="is not judged to the end")
    chosen = set(drawn[:questions])
    order = sorted((pair for pair in items if pair[0] in chosen), key=lambda pair: _draw(seal, *pair))
    packet, keys = [], []
    for number, pair in enumerate(order, start=1):
        item, (first, *_) = f"p{number:03}", items[pair]
        packet.append(
            PacketItem(
                item=item,
                question=cells[first.key].text,
                reference=references[first.question] or "",
                response=first.text or "",
                correct=None,
            )
        )
        arms = sorted((response.arm, response.budget) for response in items[pair])
        keys.append(
            PacketKey(
                item=item, question=pair[0], response_sha256=pair[1], verdict=verdicts[pair], cells=arms
            )
        )
    write_lines(folder / KEY, keys)
    write_lines(out, packet)
    return packet


def agreements(folder: Path, labels: Mapping[str, Path]) -> list[Agreement]:
    """
    Return how each two labellings of a packet agree, the judge's among them.

    Raises:
        BadRequest: A file labels other items than the packet has, or leaves one out.
    """
    keys = read_lines(folder / KEY, PacketKey)
    said: dict[str, dict[str, bool | None]] = {}
    for name, path in sorted(labels.items()):
        items = {one.item: one.correct for one in read_lines(path, PacketItem)}
        if set(items) != {key.item for key in keys} or None in items.values():
            raise BadRequest(field=str(name), reason="labels each item of the packet once, true or false")
        said[name] = items
    # A judge that failed has given no label: its failure is counted where the run is scored.
    said[JUDGE] = {
        key.item: None if key.verdict == Verdict.FAILED else key.verdict == Verdict.CORRECT for key in keys
    }
    names = list(said)
    return [
        agreement(one, other, [(key.question, said[one][key.item], said[other][key.item]) for key in keys])
        for place, one in enumerate(names)
        for other in names[place + 1 :]
    ]


def agreement(one: str, other: str, labelled: Sequence[tuple[str, bool | None, bool | None]]) -> Agreement:
    """Return how two agree on `(question, one's label, the other's)`; kappa is drawn over questions."""
    both = [(question, int(a), int(b)) for question, a, b in labelled if a is not None and b is not None]
    questions = sorted({question for question, _, _ in both})
    # For each question how often the two said (no, no), (no, yes), (yes, no), (yes, yes).
    counts = np.zeros((len(questions), 4))
    places = {question: place for place, question in enumerate(questions)}
    for question, a, b in both:
        counts[places[question], 2 * a + b] += 1
    total = counts.sum(axis=0)
    low, high = _bounds(counts)
    return Agreement(
        one=one,
        other=other,
        items=len(both),
        questions=len(questions),
        raw=float((total[0] + total[3]) / total.sum()) if both else None,
        kappa=_kappa(total),
        kappa_low=low,
        kappa_high=high,
    )


def _kappa(total: np.ndarray) -> float | None:
    n = float(total.sum())
    if not n:
        return None
    seen = float(total[0] + total[3]) / n
    yes, other_yes = float(total[2] + total[3]) / n, float(total[1] + total[3]) / n
    chance = yes * other_yes + (1 - yes) * (1 - other_yes)
    # Where both say the same of everything, agreement by chance is whole too: kappa says nothing.
    return None if chance == 1 else (seen - chance) / (1 - chance)


def _bounds(counts: np.ndarray) -> tuple[float | None, float | None]:
    """Return the 95 % percentile interval over resampled questions, those without a kappa left out."""
    if not len(counts):
        return None, None
    raw = np.random.PCG64(0).random_raw(RESAMPLES_DEFAULT * len(counts))
    places = (raw % np.uint64(len(counts))).astype(np.int64).reshape(RESAMPLES_DEFAULT, len(counts))
    drawn = counts[places].sum(axis=1)
    found = sorted(kappa for kappa in map(_kappa, drawn) if kappa is not None)
    if not found:
        return None, None
    last = len(found) - 1
    return found[round(0.025 * last)], found[round(0.975 * last)]


def _judgements(folder: Path) -> list[Judgement]:
    path = folder / JUDGEMENTS
    if not path.exists():
        raise BadRequest(field="run", reason="is not judged yet")
    return read_lines(path, Judgement)


def _draw(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
