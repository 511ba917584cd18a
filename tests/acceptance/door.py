"""One tenant behind the HTTP door, told things and asked them; each append is a commit of its own."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import httpx

from echoplane._wiring import Plane
from ledger.write import fold
from projection import RuleProjector


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """What a user can do: emit, ask, read, erase, rebuild. Folded when told to, by no process."""

    client: httpx.AsyncClient
    plane: Plane
    tenant: str

    async def call(self, method: str, path: str, *, status: int = 200, **more: Any) -> dict[str, Any]:
        """Call a route of the tenant, and see its status."""
        response = await self.client.request(method, f"/v1/{self.tenant}{path}", **more)
        assert response.status_code == status, response.text
        answer: dict[str, Any] = response.json()
        return answer

    async def emit(self, event: dict[str, Any]) -> dict[str, Any]:
        """Append one event and return its receipt; nothing is folded."""
        return await self.call("POST", "/events", status=201, json={"events": [event]})

    async def tell(self, *events: dict[str, Any]) -> list[dict[str, Any]]:
        """Append events, one commit each, and fold them; return their receipts."""
        receipts = [await self.emit(event) for event in events]
        await self.fold()
        return receipts

    async def tell_at_once(self, *events: dict[str, Any]) -> list[dict[str, Any]]:
        """Append events by as many callers, all let go at one barrier, and fold them."""
        barrier = asyncio.Barrier(len(events))

        async def one(event: dict[str, Any]) -> dict[str, Any]:
            await barrier.wait()
            return await self.emit(event)

        receipts = await asyncio.gather(*(one(event) for event in events))
        await self.fold()
        return receipts

    async def fold(self) -> None:
        """Fold everything into every epoch."""
        while not (
            await fold(self.plane.database, self.tenant, RuleProjector(), events_max=1_000)
        ).is_at_head:
            pass

    async def rebuild(self) -> int:
        """Fold the whole log into a new epoch, which then serves; return its number."""
        begun = await self.call("POST", "/epochs", status=202)
        await self.fold()
        epoch: int = begun["epoch"]
        return epoch

    async def ask(self, question: str, **view: Any) -> dict[str, Any]:
        """Ask a question."""
        return await self.call("POST", "/ask", json={"question": question} | view)

    async def resolve(self, entity: str, relation: str, **view: str) -> dict[str, Any]:
        """Read what stands on a key."""
        return await self.call("GET", "/resolve", params={"entity": entity, "relation": relation} | view)

    async def history(self, entity: str, **more: str) -> dict[str, Any]:
        """Read all that was known of an entity."""
        return await self.call("GET", "/history", params={"entity": entity} | more)

    async def erase(self, *events: str) -> dict[str, Any]:
        """Erase events."""
        return await self.call("POST", "/erasures", json={"events": list(events)})


def said(text: str, *, who: str, at: str | None = None, **more: Any) -> dict[str, Any]:
    """Return a turn of a person."""
    turn = {"stream": "chat", "kind": "turn", "actor": {"id": who, "class": "user"}, "text": text}
    return turn | ({} if at is None else {"observed_at": at}) | more


def stated(*claims: dict[str, Any], who: str, at: str | None = None, **more: Any) -> dict[str, Any]:
    """Return structured claims of a person."""
    event = {"stream": "chat", "kind": "claim", "actor": {"id": who, "class": "user"}}
    return event | {"claims": list(claims)} | ({} if at is None else {"observed_at": at}) | more


def claim(entity: str, relation: str, value: Any, **more: Any) -> dict[str, Any]:
    """Return one structured claim."""
    return {"entity": entity, "relation": relation, "value": value} | more


def ids(*receipts: dict[str, Any]) -> list[str]:
    """Return the event ids of receipts, in order."""
    return [event_id for receipt in receipts for event_id in receipt["event_ids"]]


def supports(resolved: dict[str, Any]) -> set[str]:
    """Return the events that carry an answer."""
    return {one["event"] for one in resolved["claims"]}
