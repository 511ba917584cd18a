"""
Yes and no: yes only to what stands exactly, no only to what was told and stands no more. Pure.

"Does Ann live near Lyon?" names no value of the key, and "Lyon" may be meant by "Lyon, France": of
values that are not the same and share a word, neither yes nor no is said.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from contracts.claims import Claim
from contracts.resolutions import Conflict, Missing, Resolved, ResolvedSet
from realize._arithmetic import number_of
from realize._found import Derivation, Derived, Found, missing, number_in, says, standing_of, unclear
from realize._scope import words_in, words_of
from realize._task import Task


def yes_no(task: Task, found: Sequence[Found]) -> Derivation:
    """Say whether a key has the value that is named."""
    (one,) = found
    if task.words is not None:
        return _has(one, words_in(task.words))
    standing = standing_of(one)
    asked = number_of(task.value, one.resolution.contract)
    if asked is None:
        raise unclear("not_a_number")
    return Derived(value=number_in(one, standing.value) == asked, groups=(tuple(standing.claims),))


def is_so(_: Task, found: Sequence[Found]) -> Derivation:
    """Return a value that is itself a yes or a no."""
    (one,) = found
    standing = standing_of(one)
    if not isinstance(standing.value, bool):
        raise unclear("not_a_truth")
    return Derived(value=standing.value, groups=(tuple(standing.claims),))


def _has(found: Found, asked: list[str]) -> Derivation:
    standing = list(_standing(found))
    for value, claims in standing:
        if says(value, asked):
            return Derived(value=True, groups=(claims,))
    if any(not isinstance(value, str) or words_of(value).intersection(asked) for value, _ in standing):
        raise unclear("not_the_value")
    for value, claims in _told_before(found):
        if says(value, asked):
            # What ended it, or what stands in its place, is what the no stands on.
            return Derived(value=False, groups=(claims, *(own for _, own in standing)))
    raise unclear("not_the_value")


def _standing(found: Found) -> Iterator[tuple[object, tuple[Claim, ...]]]:
    match found.resolution.resolution:
        case Resolved() as one:
            yield one.value, tuple(one.claims)
        case ResolvedSet(members=members, disputed=disputed) as several:
            if disputed or several.members_count != len(members):
                raise unclear("not_all_listed")
            for member in members:
                yield member.value, tuple(member.claims)
        case Conflict() | Missing():
            if not list(_told_before(found)):
                standing_of(found)
        case _:
            raise missing("never_known")


def _told_before(found: Found) -> Iterator[tuple[object, tuple[Claim, ...]]]:
    """Yield what ended, and, where one value stands at a time, what it replaced."""
    match found.resolution.resolution:
        case Resolved(superseded=superseded):
            yield from ((claim.value, (claim,)) for claim in superseded if claim.value is not None)
        case Missing() | ResolvedSet():
            for one in found.history.rectangles:
                if one.state == "ended" and one.known_to is None:
                    yield from ((claim.value, (claim,)) for claim in one.claims)
        case _:
            return
