"""
Where the spans of a process are sent.

What makes them is always there; what sends them is loaded only if `ECHOPLANE_TRACES_URL` is set.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Callable
from typing import Final

from opentelemetry import trace

from echoplane._settings import Settings

END_SECONDS: Final = 3.0
"""How long the end of a process waits until the last spans are sent."""


@contextlib.asynccontextmanager
async def exporting(settings: Settings, *, role: str) -> AsyncIterator[None]:
    """Send the spans of this process to where the settings say; what is left at the end is sent then."""
    if settings.traces_url is None:
        yield
        return
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415
    from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415

    resource = Resource.create({"service.name": f"echoplane-{role}"})
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=settings.traces_url)))
    trace.set_tracer_provider(provider)
    try:
        yield
    finally:
        await _end(provider.shutdown)


async def _end(shutdown: Callable[[], None]) -> None:
    loop, ended = asyncio.get_running_loop(), asyncio.Event()

    def run() -> None:
        shutdown()
        # The loop may be closed by then.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(ended.set)

    # Not in the loop's own threads: those are waited for, however long a collector hangs.
    threading.Thread(target=run, name="last spans", daemon=True).start()
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(ended.wait(), END_SECONDS)
