"""Authority is granted, not claimed: what a grant lets its bearer append."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from contracts.claims import DERIVED, OPERATOR, SELF
from contracts.errors import BadRequest, Forbidden, NotFound
from contracts.events import COMMAND_KINDS, ActorDraft, EventDraft, Kind
from contracts.grants import ANY, RESERVED_STREAMS, Grant, Right

_RIGHT_OF_COMMAND: Final = {
    Kind.RELATION: Right.ADMIN,
    Kind.DECISION: Right.OPERATOR,
    Kind.ERASURE: Right.ERASE,
}
assert _RIGHT_OF_COMMAND.keys() == COMMAND_KINDS


def check_right(grant: Grant, tenant: str, right: Right) -> None:
    """
    Check that a grant holds in a tenant.

    Raises:
        NotFound: It is another tenant's: whether that one exists is not this caller's to learn.
        Forbidden: It lacks the right.
    """
    if grant.tenant not in {None, tenant}:
        raise NotFound(what="tenant")
    if right not in grant.rights:
        raise Forbidden(needs=f"the right {right}")


def check_emit(grant: Grant, tenant: str, drafts: Sequence[EventDraft]) -> None:
    """
    Check that a grant may append these events.

    Raises:
        NotFound: The grant is another tenant's.
        Forbidden: It lacks the right `emit`, an actor or a class; or the right `operator` for a stream
            that is reserved.
        BadRequest: A kind that has a command of its own, or a class that nobody may state.
    """
    check_right(grant, tenant, Right.EMIT)
    checked: set[tuple[str, Kind, str, str]] = set()
    for index, draft in enumerate(drafts):
        kind, stream, actor = draft.kind, draft.stream, draft.actor
        asked = (stream, kind, actor.id, actor.class_)
        if asked in checked:
            # As the one before it: mostly one source says all of an append.
            continue
        if kind in COMMAND_KINDS:
            raise BadRequest(field=f"events[{index}].kind", reason=f"{kind} has a command of its own")
        if stream in RESERVED_STREAMS and Right.OPERATOR not in grant.rights:
            raise Forbidden(needs=f"the right {Right.OPERATOR}: the stream {stream} is reserved")
        _check_class(draft, index)
        _check_actor(grant, actor)
        checked.add(asked)


def check_command(grant: Grant, tenant: str, draft: EventDraft) -> None:
    """
    Check that a grant may append this `relation`, `decision` or `erasure`.

    Raises:
        NotFound: The grant is another tenant's.
        Forbidden: It lacks the command's right, the actor or the class.
        BadRequest: The kind is one that `append` takes.
    """
    if draft.kind not in COMMAND_KINDS:
        raise BadRequest(field="kind", reason=f"{draft.kind} is not a command")
    check_right(grant, tenant, _RIGHT_OF_COMMAND[draft.kind])
    _check_class(draft, 0)
    _check_actor(grant, draft.actor)


def _check_class(draft: EventDraft, index: int) -> None:
    actor_class = draft.actor.class_
    if actor_class == SELF or (actor_class == DERIVED and draft.kind != Kind.DERIVATION):
        # A claim that names no inputs must not rank, or fall, as if it were derived from some.
        raise BadRequest(field=f"events[{index}].actor.class", reason=f"`{actor_class}` is not to be stated")


def _check_actor(grant: Grant, actor: ActorDraft) -> None:
    if ANY not in grant.actors and actor.id not in grant.actors:
        raise Forbidden(needs=f"speaking as {actor.id}")
    if ANY not in grant.classes and actor.class_ not in grant.classes:
        raise Forbidden(needs=f"the class {actor.class_}")
    if actor.class_ == OPERATOR and Right.OPERATOR not in grant.rights:
        raise Forbidden(needs=f"the right {Right.OPERATOR}")
