"""What is to be derived of a question, and what the ledger gives for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from sqlalchemy.ext.asyncio import AsyncConnection

from contracts.proposals import Proposal
from contracts.resolutions import KeyResolution
from contracts.trails import Question
from contracts.views import View
from echoplane._histories import found_for
from echoplane._holders import held_by
from ledger.log import TenantKeys
from realize import (
    NOT_OF_KIND,
    Derivation,
    Derived,
    Holders,
    Task,
    Withheld,
    derive,
    holding,
    is_mutual,
    named_pairs,
    read_holders,
    read_task,
    standing_of_holders,
)

Asking: TypeAlias = Task | Holders


def asking_of(question: Question, proposal: Proposal) -> Asking | None:
    """Return what is to be derived, of a question that is understood whole over the names of the record."""
    task = read_task(question, proposal.plan, named_pairs(proposal.plan, proposal))
    return read_holders(question, proposal.plan) if task is None else task


async def derived_for(
    conn: AsyncConnection,
    keys: TenantKeys,
    view: View,
    asking: Asking | None,
    resolved: Mapping[tuple[str, str], KeyResolution],
    *,
    is_named: bool,
) -> tuple[Derivation | None, list[KeyResolution]]:
    """
    Return what follows from resolved states, and the answers that it stands on beside those of named keys.

    None where nothing is to be derived, or where a question that names a key (`is_named`) can be answered
    from that alone.

    Raises:
        IntegrityFault: Something that was read is not what was written.
    """
    match asking:
        case None:
            return None, []
        case Task() as task:
            found = await found_for(conn, keys, view, task, resolved)
            derivation = derive(task, found, at=view.valid_at, known_at=view.known_at)
            if isinstance(derivation, Withheld) and derivation.reason == NOT_OF_KIND:
                return None, []
            return derivation, []
        case Holders() as holders:
            return await _held(conn, keys, view, holders, is_named=is_named)


async def _held(
    conn: AsyncConnection, keys: TenantKeys, view: View, holders: Holders, *, is_named: bool
) -> tuple[Derivation | None, list[KeyResolution]]:
    if is_named and any(map(is_mutual, holders.relations)):
        # "Who is married to Ann?" is answered from Ann's own key.
        return None, []
    found, whole, erased = await held_by(conn, keys, view, holders)
    derivation = holding(holders, found, whole=whole, erased=erased, at=view.valid_at, known_at=view.known_at)
    if is_named and not isinstance(derivation, Derived):
        return None, []
    return derivation, standing_of_holders(derivation, found)
