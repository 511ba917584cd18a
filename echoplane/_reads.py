"""The use cases of reading a record: histories, differences, joins, and views by name."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

from sqlalchemy.ext.asyncio import AsyncConnection

from contracts.errors import BadRequest
from contracts.read_wire import DiffAnswer, HistoryAnswer, JoinAnswer, OccurrencesAnswer, PinnedViewAnswer
from contracts.relations import Cardinality
from contracts.views import View, ViewRequest
from echoplane import _present_reads as present
from echoplane._requests import OPEN, Known
from echoplane._wiring import NEWEST, Plane
from ledger import log as ledger_log
from ledger import resolve as ledger_resolve


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryWanted:
    """
    Which part of whose history is wanted, and how it is shown.

    `timeline` is what stands along valid time at the view; `at` how what is known about one instant
    changed. They go with no other bound in known time, and with none in valid time, respectively.
    """

    entity: str
    relation: str | None
    valid_from: datetime | None
    valid_to: datetime | None
    known_from: Known
    known_to: Known
    timeline: bool
    at: datetime | None

    def __post_init__(self) -> None:
        """Refuse what contradicts itself."""
        _check_order(self.valid_from, self.valid_to, "valid_to")
        if self.at is not None and (self.timeline or self.valid_from or self.valid_to):
            raise BadRequest(field="at", reason="goes with neither timeline nor a window of valid time")
        if self.timeline and (self.known_from != OPEN or self.known_to != OPEN):
            raise BadRequest(
                field="timeline", reason="is as known at the view: a window of known time is none"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinWanted:
    """Which two keys are joined, and how."""

    left: tuple[str, str]
    right: tuple[str, str]
    on_value: bool
    bitemporal: bool
    valid_from: datetime | None
    valid_to: datetime | None

    def __post_init__(self) -> None:
        """Refuse a window that holds nothing."""
        _check_order(self.valid_from, self.valid_to, "valid_to")


@dataclass(frozen=True, slots=True, kw_only=True)
class OccurrencesWanted:
    """Of which key, and which window of valid time they fall into, be it in part."""

    entity: str
    relation: str
    valid_from: datetime | None
    valid_to: datetime | None

    def __post_init__(self) -> None:
        """Refuse a window that holds nothing."""
        _check_order(self.valid_from, self.valid_to, "valid_to")


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffWanted:
    """Which lines are compared; `at_instants` at the views' own instants, else along all valid time."""

    entity: str | None
    relation: str | None
    at_instants: bool
    from_line: int


async def named(plane: Plane, tenant: str, name: str | None, request: ViewRequest) -> ViewRequest:
    """
    Return the request for the view of that name; without a name, the request itself.

    Raises:
        NotFound: Nothing was pinned under it.
        BadRequest: Something else about the view is said beside its name.
    """
    if name is None:
        return request
    if replace(request, min_commit=None) != NEWEST:
        raise BadRequest(field="view", reason="stands for all of a view: nothing else can be said of it")
    return (await ledger_resolve.pinned_view(plane.database, tenant, name)).request


async def history(plane: Plane, tenant: str, request: ViewRequest, wanted: HistoryWanted) -> HistoryAnswer:
    view = await _pinned(plane, tenant, request)
    shape: present.Shape = "rectangles" if wanted.at is None else "instant"
    async with plane.long_reads.of(tenant), plane.database.snapshot(tenant) as conn:
        keys = await ledger_log.tenant_keys(plane.database, tenant, conn)
        if wanted.timeline:
            shape = "timeline"
            found = await ledger_resolve.timeline(
                conn, keys, view, wanted.entity, wanted.relation,
                valid_from=wanted.valid_from, valid_to=wanted.valid_to,
            )  # fmt: skip
        else:
            found = await ledger_resolve.history(
                conn, keys, wanted.entity, wanted.relation, epoch=view.epoch, cut=view.cut,
                window=await _window(conn, keys, wanted),
            )  # fmt: skip
        relations = dict.fromkeys(rectangle.relation for rectangle in found.rectangles)
        if wanted.relation is not None:
            relations = {wanted.relation: None}
        pairs = [(wanted.entity, relation) for relation in relations]
        stands = await ledger_resolve.resolve_many(conn, keys, view, pairs)
        withdrawn = await ledger_resolve.withdrawn_on(conn, keys, view, pairs)
    unplaced = [claim for one in stands for claim in one.unplaced]
    answer = partial(
        present.history_answer, found, unplaced, withdrawn, relation=wanted.relation, shape=shape, view=view
    )
    return await ledger_log.aside(answer, items=len(found.rectangles))


async def _window(
    conn: AsyncConnection, keys: ledger_log.TenantKeys, wanted: HistoryWanted
) -> ledger_resolve.Window:
    """Return the window that is wanted, its bounds in known time as commits."""
    instants = (wanted.known_from.instant, wanted.known_to.instant)
    by_clock = await ledger_resolve.known_commits(conn, keys, *instants)
    known_from = by_clock[0] if wanted.known_from.commit is None else wanted.known_from.commit
    known_to = by_clock[1] if wanted.known_to.commit is None else wanted.known_to.commit
    if wanted.at is not None:
        return replace(ledger_resolve.Window.at(wanted.at), known_from=known_from, known_to=known_to)
    return ledger_resolve.Window(
        valid_from=wanted.valid_from, valid_to=wanted.valid_to, known_from=known_from, known_to=known_to
    )


async def diff(
    plane: Plane, tenant: str, before: ViewRequest, after: ViewRequest, wanted: DiffWanted
) -> DiffAnswer:
    # The later one first: where its commit is waited for, the other is there too.
    later = await _pinned(plane, tenant, after)
    if before == NEWEST and not wanted.at_instants:
        # Of the first view nothing is said: from the empty ledger on, so all that came.
        earlier = replace(later, cut=0)
    else:
        earlier = await _pinned(plane, tenant, before)
    async with plane.long_reads.of(tenant), plane.database.snapshot(tenant) as conn:
        keys = await ledger_log.tenant_keys(plane.database, tenant, conn)
        found = await ledger_resolve.diff(
            conn,
            keys,
            earlier,
            later,
            entity=wanted.entity,
            relation=wanted.relation,
            at_instants=wanted.at_instants,
            from_line=wanted.from_line,
        )
    answer = partial(present.diff_answer, found, before=earlier, after=later, instants=wanted.at_instants)
    return await ledger_log.aside(answer, items=len(found.changes))


async def join(plane: Plane, tenant: str, request: ViewRequest, wanted: JoinWanted) -> JoinAnswer:
    view = await _pinned(plane, tenant, request)
    async with plane.long_reads.of(tenant), plane.database.snapshot(tenant) as conn:
        keys = await ledger_log.tenant_keys(plane.database, tenant, conn)
        found = await ledger_resolve.join(
            conn,
            keys,
            view,
            wanted.left,
            wanted.right,
            on_value=wanted.on_value,
            bitemporal=wanted.bitemporal,
            valid_from=wanted.valid_from,
            valid_to=wanted.valid_to,
        )
    answer = partial(present.join_answer, found, view=view, bitemporal=wanted.bitemporal)
    return await ledger_log.aside(answer, items=len(found.pairs))


async def occurrences(
    plane: Plane, tenant: str, request: ViewRequest, wanted: OccurrencesWanted
) -> OccurrencesAnswer:
    """
    Count what happened.

    Raises:
        BadRequest: The relation's contract does not count occurrences.
    """
    view = await _pinned(plane, tenant, request)
    async with plane.long_reads.of(tenant), plane.database.snapshot(tenant) as conn:
        keys = await ledger_log.tenant_keys(plane.database, tenant, conn)
        registered = await ledger_resolve.registered_contracts(conn, keys, view)
        contract = registered.get(wanted.relation) or ledger_resolve.usual_contract(wanted.relation)
        if contract.cardinality != Cardinality.OCCURRENCE:
            reason = f"its cardinality is {contract.cardinality}: only occurrences are counted"
            raise BadRequest(field="relation", reason=reason)
        found = await ledger_resolve.occurrences(
            conn, keys, view, wanted.entity, wanted.relation, start=wanted.valid_from, end=wanted.valid_to
        )
    answer = partial(
        present.occurrences_answer,
        found,
        view=view,
        key=(wanted.entity, wanted.relation),
        window=(wanted.valid_from, wanted.valid_to),
        contract=contract,
    )
    return await ledger_log.aside(answer, items=len(found.members) + len(found.disputed))


async def pin_view(plane: Plane, tenant: str, name: str, request: ViewRequest) -> PinnedViewAnswer:
    """Pin a view under a name: what the request leaves out becomes the newest, now and for good."""
    view = await _pinned(plane, tenant, request)
    pinned = await ledger_resolve.pin_view(plane.database, tenant, name, view)
    return present.pinned_answer(tenant, pinned)


async def show_view(plane: Plane, tenant: str, name: str) -> PinnedViewAnswer:
    return present.pinned_answer(tenant, await ledger_resolve.pinned_view(plane.database, tenant, name))


async def list_views(plane: Plane, tenant: str) -> list[PinnedViewAnswer]:
    found = await ledger_resolve.pinned_views(plane.database, tenant)
    return [present.pinned_answer(tenant, pinned) for pinned in found]


async def unpin_view(plane: Plane, tenant: str, name: str) -> PinnedViewAnswer:
    return present.pinned_answer(tenant, await ledger_resolve.unpin_view(plane.database, tenant, name))


async def _pinned(plane: Plane, tenant: str, request: ViewRequest) -> View:
    return await ledger_resolve.pin(plane.database, tenant, request, wait_ms=plane.wait_ms)


def _check_order(start: datetime | None, end: datetime | None, field: str) -> None:
    if start is not None and end is not None and start >= end:
        raise BadRequest(field=field, reason="the window is empty or inverted")
