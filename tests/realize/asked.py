"""Questions put to `realize` over a context that shows what a test says."""

from contracts.proposals import Operation
from contracts.resolutions import Conflict, Rival
from realize import realize
from realize._show import show as shown
from tests.packing.values import (
    claim,
    closure,
    evidence,
    key,
    member,
    named,
    packed,
    plan,
    proposal,
    question,
)

LIVES = key(member(3, "Lyon", superseded=[claim(1, "Boston")]))


def conflict(first="Leuven", second="Bruges", *, ended=False, positions=(1, 2)):
    one, other = positions
    return Conflict(
        rivals=(
            Rival(value=first, ended=False, claim=claim(one, first)),
            Rival(value=None if ended else second, ended=ended, claim=claim(other, second)),
        ),
        why="sources_not_ordered",
        superseded=(),
    )


def ask(text, *resolutions, operation=Operation.CURRENT_STATE, keys=None, shown=(1, 2, 3), **fields):
    """Realize over a context that shows the events `shown`."""
    names = [named(each.entity, each.relation) for each in resolutions] if keys is None else keys
    the_plan = plan(
        operation,
        relations=fields.pop("relations", tuple(dict.fromkeys(each.relation for each in names))),
        entities=fields.pop("entities", tuple(dict.fromkeys(each.entity for each in names))),
        times=fields.pop("times", ()),
    )
    pack = packed(
        [closure("key", *shown, required=True)] if shown else [],
        [evidence(position) for position in shown],
        budget_tokens=fields.pop("budget_tokens", 2_048),
    )
    return realize(
        question=question(text, **fields),
        plan=the_plan,
        proposal=proposal(*names, the_plan=the_plan),
        resolutions=resolutions,
        pack=pack,
    )


def show(derivation, pack, *, disclose=False):
    """Show what was derived over a context."""
    return shown(question("What?", disclose_conflicts=disclose), derivation, pack, contract=LIVES.contract)
