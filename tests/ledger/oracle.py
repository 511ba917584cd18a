"""
A brute-force oracle, written from the rules alone: it shares no code with the ledger.

Time is a finite list of sample instants, and where a claim holds is the set of those it covers. It
is slow, and simple enough to be read beside SEMANTICS; each part names its section.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from contracts.claims import Claim
from tests.ledger.oracle_erased import Shared
from tests.ledger.oracle_ranks import PAIR, Item, before
from tests.ledger.oracle_said import Said

REASONS = ["ended", "erased", "withdrawn", "undetermined", "not_valid_then", "never_known"]


class Oracle(Said):
    """Judges all claims up to one cut, at any of the sample instants."""

    def __init__(
        self, claims: list[Claim], contract_of, instants: list[datetime], shared: Shared | None = None
    ) -> None:
        super().__init__(claims, contract_of, instants, shared)
        self.paired: list[Item] = []
        if any(claim.relation in {"same_as", "not_same_as"} for claim in self.claims):
            # Who is one with whom is told from what each name says itself, before any two are one.
            self._replay()
            self.paired = [item for item in self.items if item.relation == PAIR]
            self._merge()
            self.items, self.disputes, self.unplaced = [], [], set()
        self._replay()
        self.all_items = self.items
        # What is erased about a subject did what it did, and leaves nothing.
        self.items = [item for item in self.items if self.shared.hidden_in(item) is None]

    # --- §8 entities ----------------------------------------------------------------------

    def _merge(self) -> None:
        found: dict[frozenset, str] = {}
        ranks: dict[frozenset, int] = {}
        strong: set[frozenset] = set()
        said_by: dict[frozenset, set[str]] = {}
        for pair in {item.entity for item in self.paired}:
            sides = self.pair(pair)
            if not sides:
                continue
            kinds = set(sides)
            if len(kinds) == 1 and kinds <= {"same_as", "not_same_as"}:
                found[pair] = kinds.pop()
                carriers = sides[found[pair]]
                ranks[pair] = min(self._rank(i) for i in carriers)
                said_by[pair] = {i.source for i in carriers}
                # A claim counts with the source and class of what it corrected, and `derived` is no other.
                stated = [i for i in carriers if i.granted != "derived"]
                if set(pair) <= {i.source for i in stated} or any(i.granted == "operator" for i in stated):
                    strong.add(pair)
        edges = {pair for pair, kind in found.items() if kind == "same_as"}
        for component in self._components(edges):
            inside = [ranks[pair] for pair in edges if pair <= component]
            splits = [
                pair
                for pair, kind in found.items()
                if kind == "not_same_as" and pair <= component and ranks[pair] <= max(inside)
            ]
            if not splits:
                self.one.update(dict.fromkeys(component, component))
                for part in self._components({pair for pair in edges & strong if pair <= component}):
                    self.selves.update(dict.fromkeys(part, part))
                for pair in [pair for pair in edges if pair <= component]:
                    # "Mallory cannot make himself Ann": it was his own word that joined them.
                    if not any(pair <= part for part in self.selves.values()):
                        for actor in said_by[pair]:
                            self.unheard |= self.selves.get(actor, {actor}) & component

    def pair(self, names: frozenset) -> dict[Any, list[Item]] | None:
        """What is said of two names, with what carries it (None for an end); None if all is withdrawn."""
        said = [i for i in self.paired if i.entity == names and self.shared.hidden_in(i) is None]
        live = [i for i in said if not i.gone and not self._input_gone(i)]
        return self._struck(*self._steps(live)[:2]) if live else None

    @staticmethod
    def _components(edges: set) -> list[set]:
        groups: list[set] = []
        for pair in edges:
            joined = set(pair)
            for group in [group for group in groups if group & joined]:
                joined |= group
                groups.remove(group)
            groups.append(joined)
        return groups

    # --- §7 derived -----------------------------------------------------------------------

    def covers(self, item: Item, at: datetime) -> bool:
        if at not in self._extent(item) or at in item.gone or self._input_gone(item):
            return False
        if item.kind != "since":
            return True
        for source in item.inputs:
            if self._contract(source.relation).cardinality.value == "occurrence":
                continue
            if source.granted == "derived":
                if not self.covers(source, at):
                    return False
            elif not self._carries(source, at):
                return False
        return True

    def _carries(self, item: Item, at: datetime) -> bool:
        # As if nothing were erased: what is derived must not come up because something else was.
        items, self.items = self.items, [i for i in self.all_items if self._know(i, item)]
        lines = self._lines(item.entity, item.relation, at, observed=True)
        self.items = items
        # "Its key's answer": an end of every value carries it where it does so on every line.
        answers = [self._line(line, at, as_if=True) for line in lines.values() if item in line]
        return bool(answers) and all(
            answer["state"] in {"value", "ended"} and item in next(iter(answer["sides"].values()))
            for answer in answers
        )

    def _know(self, one: Item, other: Item) -> bool:
        """What was erased about a subject at once decides among itself, and with nothing else."""
        return self.shared.hidden_in(one) == self.shared.hidden_in(other)

    # --- §5 one line ----------------------------------------------------------------------

    def _comparable(self, x: Item, y: Item, *, window: timedelta) -> bool:
        for end, other in ((x, y), (y, x)):
            if end.end and end.value is not None:
                if other.end and other.value not in {None, end.value}:
                    return False
                if not other.end and end.value not in other.values:
                    return False
        if x.source == y.source:
            return True
        if not (self._any(x) or self._any(y)):
            return False
        if window and x.start is not None and y.start is not None:
            return abs(x.start - y.start) >= window
        return not window or (x.start is None) != (y.start is None)

    def _steps(self, present: list[Item]) -> tuple[list[Item], list[Item], list[Item]]:
        """Return what is left, what left only to claims of its own value, and ends that are not counted."""

        def value(item: Item) -> Any:
            return ("ended",) if item.end else ("is", item.value)

        to_own: list[Item] = []

        def leave(items: list[Item], beats) -> list[Item]:
            left = []
            for x in items:
                beaters = {value(y) for y in items if y is not x and beats(x, y)}
                if not beaters:
                    left.append(x)
                elif beaters == {value(x)}:
                    to_own.append(x)
            return left

        best = min(self._rank(i) for i in present)
        top = [i for i in present if self._rank(i) == best]
        to_own += [x for x in present if x not in top and {value(y) for y in top} == {value(x)}]
        window = self._contract(present[0].relation).conflict_window
        left = leave(
            top,
            lambda x, y: (
                y.kind != "since" and y.place > x.place and self._comparable(x, y, window=timedelta(0))
            ),
        )
        left = leave(
            left,
            lambda x, y: (
                (before(x.start, y.start) or (x.start == y.start and y.place > x.place))
                and self._comparable(x, y, window=window)
            ),
        )
        values = [i for i in left if not i.end]
        counted = [
            i for i in left if not (i.end and i.value is not None) or all(i.value in v.values for v in values)
        ]
        # An end of another value is not counted, but nothing made it leave.
        return counted, to_own, [i for i in left if i not in counted]

    def _line(self, line: list[Item], at: datetime, *, as_if: bool = False) -> dict:
        present = [i for i in line if self._here(i, line, at)]
        if not present:
            return {"state": self._nothing(line, at), "sides": {}, "superseded": []}
        left, to_own, foreign = self._steps(present)
        sides = self._sides(left, to_own) if as_if else self._struck(left, to_own)
        latest = {
            value: max(
                [i for i in own if i in left] or own,
                key=lambda i: (i.start is not None, i.start or self.instants[0], i.place),
            )
            for value, own in sides.items()
        }
        carrying = [i for own in sides.values() for i in own]
        superseded = [i for i in present if i not in carrying and i not in foreign and i.erased is None]
        state = "conflict" if len(sides) > 1 else ("ended" if None in sides else "value")
        if not sides:
            state = "erased"
        return {"state": state, "sides": sides, "superseded": superseded, "latest": latest}

    @staticmethod
    def _sides(left: list[Item], to_own: list[Item]) -> dict[Any, list[Item]]:
        """The values left, with what carries them."""
        sides: dict[Any, list[Item]] = {}
        for item in left:
            sides.setdefault(None if item.end else item.value, []).append(item)
        for item in to_own:
            value = None if item.end else item.value
            if value in sides:
                sides[value].append(item)
        return sides

    def _struck(self, left: list[Item], to_own: list[Item]) -> dict[Any, list[Item]]:
        """§9: the same without tombstones, and values that they alone carry."""
        sides = self._sides(left, to_own)
        kept = {value: [i for i in own if i.erased is None] for value, own in sides.items()}
        return {value: own for value, own in kept.items() if own}

    def _nothing(self, line: list[Item], at: datetime) -> str:
        if any(at in self._extent(i) and (at in i.gone or self._input_gone(i)) for i in line):
            return "withdrawn"
        for i in line:
            doubtful = before(at, i.start) and (i.timeless or not before(at, i.earliest))
            if doubtful and at not in i.gone and not self._input_gone(i):
                return "undetermined"
        return "not_valid_then"

    # --- §6 lines -------------------------------------------------------------------------

    def _here(self, item: Item, line: list[Item], at: datetime) -> bool:
        if not self.covers(item, at):
            return False
        exact = getattr(line, "exact", None)
        return (
            exact is None or item in exact or item.end or any(self.covers(i, at) for i in exact if not i.end)
        )

    def _lines(self, entity: str, relation: str, at: datetime, *, observed: bool = False) -> dict:
        items = [i for i in self.items if self._same_key(i, entity, relation)]
        if observed:
            items = [i for i in items if i.granted != "derived"]
        match self._contract(relation).cardinality.value:
            case "one":
                return {"": items} if items else {}
            case "many":
                values = {i.value for i in items if i.value is not None}
                return {v: [i for i in items if self._on_value(i, v, items)] for v in values}
            case _:
                return self._occurrences(items)

    def _on_value(self, item: Item, value: Any, items: list[Item]) -> bool:
        if item.value == value or (item.end and item.value is None):
            return True
        others = [i for i in items if i.value == value and not i.end]
        return item.end and any(item.value in other.values for other in others)

    def _occurrences(self, items: list[Item]) -> dict:
        mentions = [i for i in items if not i.end]
        live = [i for i in mentions if any(self.covers(i, t) for t in self.instants)]

        def contains(outer: Item, inner: Item) -> bool:
            starts = not before(inner.start, outer.start)
            return (
                outer.value == inner.value
                and starts
                and (outer.stop is None or (inner.stop is not None and inner.stop <= outer.stop))
            )

        def vague(i: Item) -> bool:
            return i in live and i.occurrence is None and any(
                contains(i, j) and (j.occurrence is not None or (i.start, i.stop) != (j.start, j.stop))
                for j in live if j is not i
            )  # fmt: skip

        lines: dict[Any, Any] = {}
        for i in mentions:
            if not vague(i):
                name = i.occurrence or (i.value, i.start, i.stop)
                lines.setdefault(name, _Line()).append(i)
        for name, line in lines.items():
            line.exact = list(line)
            own = set().union(*(i.values for i in line))
            # An end with an id is of that occurrence alone: it is the identity of its line.
            line += [
                i for i in items
                if i.end and (i.occurrence == name if i.occurrence else i.value is None or i.value in own)
            ]  # fmt: skip
            line += [i for i in mentions if vague(i) and any(contains(i, j) for j in line.exact if j in live)]
        return lines

    def decide(self, entity: str, relation: str, at: datetime) -> dict:
        """The key's answer in plain words: values with the claims that carry them."""
        lines = self._lines(entity, relation, at)
        answers = {name: self._line(line, at) for name, line in lines.items()}
        states = {answer["state"] for answer in answers.values()}
        reason = None
        if not states & {"value", "conflict"}:
            reason = min(states, key=REASONS.index, default="never_known")
        here = {id(i) for line in lines.values() for i in line if self._here(i, line, at)}
        return {
            "reason": reason,
            "resolved": sorted(
                (str(value), _names(items))
                for answer in answers.values()
                if answer["state"] == "value"
                for value, items in answer["sides"].items()
            ),
            "conflicts": sorted(
                sorted((str(value), answer["latest"][value].claim.claim_id) for value in answer["sides"])
                for answer in answers.values()
                if answer["state"] == "conflict"
            ),
            "superseded": sorted({n for a in answers.values() for n in _names(a["superseded"])}),
            "disputes": [
                claim.claim_id
                for claim, about in self.disputes
                if claim.event_id not in self.shared.erased
                and any(id(i) in here and i.erased is None for i in about)
            ],
        }


class _Line(list):
    exact: list


def _names(items: list[Item]) -> list[str]:
    return sorted({item.claim.claim_id for item in items})
