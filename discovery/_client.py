"""The query path's end of the private socket."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from contracts.errors import LimitExceeded, Unavailable
from contracts.proposals import Proposal
from contracts.trails import Question
from contracts.views import View
from discovery._private import is_private
from discovery._shards import shard_of
from discovery._wire import (
    ANSWER_BYTES_MAX,
    Dropped,
    DropRequest,
    Health,
    HealthRequest,
    decode_proposals,
    encode_propose,
    encode_request,
    raise_error,
    read_frame,
    together,
    write_frame,
)

CONNECT_SECONDS: Final = 2.0
ANSWER_SECONDS: Final = 12.0
"""Longer than the service gives itself: it answers that it was late before we stop listening."""


class Client:
    """
    Asks the discovery service; implements `contracts.ports.Discovery`.

    A connection a call, on a socket in a private folder: nothing to keep alive or to reset when the
    service restarts. Where there are several processes, each tenant has one, by a hash of its name.
    Routes named in `without` stay off in all it asks.
    """

    def __init__(
        self,
        sockets: Path | Sequence[Path],
        *,
        answer_seconds: float = ANSWER_SECONDS,
        without: Collection[str] = (),
    ) -> None:
        self._sockets = (sockets,) if isinstance(sockets, Path) else tuple(sockets)
        self._answer_seconds = answer_seconds
        self._without = frozenset(without)

    async def propose(self, *, tenant: str, question: Question, view: View) -> Proposal:
        """
        Return candidates for a question.

        Raises:
            Unavailable: It is down, busy, or did not answer in time; go on with typed state, degraded.
            NotFound: No such tenant.
            BadRequest: The question or the view is out of bounds, or there is no such route to leave out.
        """
        (proposal,) = await self.propose_many(tenant=tenant, questions=[question], view=view)
        return proposal

    async def propose_many(
        self, *, tenant: str, questions: Sequence[Question], view: View
    ) -> tuple[Proposal, ...]:
        """Return candidates for each question, 16 at most, for one look at the log. Raises as `propose`."""
        request = encode_propose(tenant=tenant, questions=questions, view=view, without=self._without)
        return decode_proposals(await self._call(self._socket_of(tenant), request), count=len(questions))

    async def health(self) -> Health:
        """
        Return how the service is: all its processes together.

        Raises:
            Unavailable: One of them is down.
        """
        request = encode_request(HealthRequest(operation="health"))
        try:
            return together(
                [Health.model_validate_json(await self._call(path, request)) for path in self._sockets]
            )
        except ValidationError as error:
            raise Unavailable(part="discovery", reason="its answer cannot be read") from error

    async def drop_index(self, tenant: str) -> int:
        """
        Have the service begin a tenant's index anew, without the vectors it has; return how many these were.

        Raises:
            Unavailable: It is down.
            NotFound: No such tenant.
        """
        request = encode_request(DropRequest(operation="drop_index", tenant=tenant))
        answer = await self._call(self._socket_of(tenant), request)
        try:
            return Dropped.model_validate_json(answer).vectors
        except ValidationError as error:
            raise Unavailable(part="discovery", reason="its answer cannot be read") from error

    def _socket_of(self, tenant: str) -> Path:
        return self._sockets[shard_of(tenant, len(self._sockets))]

    async def _call(self, path: Path, request: bytes) -> bytes:
        if not is_private(path.parent):
            # Never started, or somebody else's trap: a question is not said to just anybody.
            raise Unavailable(part="discovery", reason="the service is down")
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                reader, writer = await asyncio.open_unix_connection(path)
        except (OSError, TimeoutError) as error:
            raise Unavailable(part="discovery", reason="the service is down") from error
        try:
            async with asyncio.timeout(self._answer_seconds):
                await write_frame(writer, request)
                answer = await read_frame(reader, bytes_max=ANSWER_BYTES_MAX)
        except TimeoutError as error:
            raise Unavailable(part="discovery", reason="no answer in time") from error
        except (OSError, asyncio.IncompleteReadError, LimitExceeded) as error:
            raise Unavailable(part="discovery", reason="the connection broke off") from error
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
        raise_error(answer)
        return answer
