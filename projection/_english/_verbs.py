"""The verb group: tense, negation and whether it says that something is over."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from projection._english._clauses import Clause
from projection._english._frames import ENDING_VERBS, FORMS, STARTING_VERBS
from projection._english._inflection import Form
from projection._english._subjects import Person
from projection._english._words import word_set

_ADVERBS: Final = word_set(
    "now currently still also just recently lately really actually officially finally already both all "
    "presently happily permanently proudly only even absolutely truly genuinely definitely certainly "
    "totally simply quite very since"
)


class Tense(Enum):
    """What a form says about time; `USED_TO` is a past habit."""

    PRESENT = "present"
    PAST = "past"
    PERFECT = "perfect"
    USED_TO = "used to"


@dataclass(frozen=True, slots=True, kw_only=True)
class VerbGroup:
    """
    A verb with its auxiliaries.

    `verb` is a base form ("be" for a copula), `end` the index of the token after it. `over` says
    "no longer"; `stopped` and `started` that the verb is the gerund of such a verb.
    """

    verb: str
    tense: Tense
    progressive: bool
    negative: bool
    over: bool
    stopped: bool
    started: bool
    end: int


class _Scan:
    """A place in a clause, and what auxiliaries said so far."""

    def __init__(self, clause: Clause, start: int) -> None:
        self.clause = clause
        self.index = start
        self.negative = False
        self.over = False

    def low(self) -> str:
        return self.clause.low(self.index)

    def skip(self) -> None:
        """Step over adverbs, `not` and `no longer`."""
        while True:
            low = self.low()
            if low in _ADVERBS:
                self.index += 1
            elif low in {"not", "n't"}:
                self.negative = True
                self.index += 1
            elif low == "no" and self.clause.low(self.index + 1) == "longer":
                self.over = True
                self.index += 2
            else:
                return

    def group(
        self,
        verb: str,
        tense: Tense,
        *,
        progressive: bool = False,
        stopped: bool = False,
        started: bool = False,
    ) -> VerbGroup:
        return VerbGroup(
            verb=verb,
            tense=tense,
            progressive=progressive,
            negative=self.negative,
            over=self.over,
            stopped=stopped,
            started=started,
            end=self.index,
        )


def read_verbs(clause: Clause, start: int, person: Person) -> list[VerbGroup]:
    """Return the readings of the verb group at token `start`; empty where there is none we know."""
    scan = _Scan(clause, start)
    scan.skip()
    low = scan.low()
    if low in {"am", "is", "are", "'m", "'re", "'s", "was", "were"}:
        return _copula(scan, low, person)
    if low in {"have", "has", "'ve"}:
        groups = _perfect(scan, low, person)
        if groups or low == "'ve":
            return groups
        scan = _Scan(clause, start)
        scan.skip()
    if low in {"do", "does"} and _agrees(Form.BASE if low == "do" else Form.THIRD, person):
        scan.index += 1
        scan.skip()
        return _main(scan, Form.BASE, Tense.PRESENT)
    if (
        low == "can"
        and clause.low(scan.index + 1) == "n't"
        and clause.low(scan.index + 2) in {"stand", "bear"}
    ):
        scan.index += 3
        return [scan.group("hate", Tense.PRESENT)]
    if low == "did":
        return []
    if low == "used" and clause.low(scan.index + 1) == "to":
        scan.index += 2
        if scan.low() == "be":
            scan.index += 1
            return [scan.group("be", Tense.USED_TO)]
        return _main(scan, Form.BASE, Tense.USED_TO)
    return _finite(scan, person)


def _copula(scan: _Scan, low: str, person: Person) -> list[VerbGroup]:
    if low == "'s" and scan.clause.low(scan.index + 1) in {"been", "got"}:
        return _perfect(scan, "has", person)
    wanted = {
        Person.FIRST: {"am", "'m", "was"},
        Person.WE: {"are", "'re", "were"},
        Person.SEVERAL: {"are", "were"},
        Person.ONE: {"is", "'s", "was"},
        Person.PET: {"is", "'s", "was"},
        Person.THING: {"is", "are", "'s", "was", "were"},
    }[person]
    if low not in wanted:
        return []
    past = low in {"was", "were"}
    scan.index += 1
    scan.skip()
    groups = [] if past else _main(scan, Form.GERUND, Tense.PRESENT, progressive=True)
    return groups or [scan.group("be", Tense.PAST if past else Tense.PRESENT)]


def _perfect(scan: _Scan, low: str, person: Person) -> list[VerbGroup]:
    if low == "'ve" and person not in {Person.FIRST, Person.WE}:
        return []
    if low in {"have", "has"} and not _agrees(Form.BASE if low == "have" else Form.THIRD, person):
        return []
    scan.index += 1
    scan.skip()
    if scan.low() == "got":
        scan.index += 1
        after_got = scan.group("have", Tense.PRESENT)
        return [after_got, *_gotten(scan)]
    if scan.low() == "been":
        scan.index += 1
        scan.skip()
        gerunds = _main(scan, Form.GERUND, Tense.PERFECT, progressive=True)
        return gerunds or [scan.group("be", Tense.PERFECT)]
    return _main(scan, Form.PARTICIPLE, Tense.PERFECT)


def _gotten(scan: _Scan) -> list[VerbGroup]:
    # "I've got married to Ana": British for "gotten".
    return [scan.group("get", Tense.PERFECT)]


def _finite(scan: _Scan, person: Person) -> list[VerbGroup]:
    plural = person in {Person.FIRST, Person.WE, Person.SEVERAL}
    groups: list[VerbGroup] = []
    place = scan.index
    for wanted, tense in ((Form.BASE if plural else Form.THIRD, Tense.PRESENT), (Form.PAST, Tense.PAST)):
        scan.index = place
        groups += _main(scan, wanted, tense)
    return groups


def _main(scan: _Scan, wanted: Form, tense: Tense, *, progressive: bool = False) -> list[VerbGroup]:
    forms = FORMS.get(scan.low(), ())
    place = scan.index
    groups: list[VerbGroup] = []
    for verb, form in forms:
        if not form & wanted:
            continue
        scan.index = place + 1
        if not progressive and (verb in ENDING_VERBS or verb in STARTING_VERBS):
            groups += _gerund_after(scan, verb, tense)
            scan.index = place + 1
        groups.append(scan.group(verb, tense, progressive=progressive))
    return groups


def _gerund_after(scan: _Scan, verb: str, tense: Tense) -> list[VerbGroup]:
    if verb == "give":
        if scan.low() != "up":
            return []
        scan.index += 1
    forms = FORMS.get(scan.low(), ())
    scan.index += 1
    ending = verb in ENDING_VERBS
    return [
        scan.group(base, tense, stopped=ending, started=not ending)
        for base, form in forms
        if form & Form.GERUND
    ]


def _agrees(form: Form, person: Person) -> bool:
    plural = person in {Person.FIRST, Person.WE, Person.SEVERAL}
    return plural if form == Form.BASE else not plural
