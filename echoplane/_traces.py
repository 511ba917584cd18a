"""
Spans: of appends, linked by the commit that they made, and where those of a process are sent.

Nothing is made of any of them, and nothing loaded for it, unless `ECHOPLANE_TRACES_URL` is set.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from opentelemetry import trace
from opentelemetry.trace import Span, SpanContext, TraceFlags

from contracts.errors import BadRequest
from contracts.traces import commit_link
from echoplane._settings import Settings

_tracer = trace.get_tracer("echoplane")


@contextmanager
def span(name: str) -> Iterator[Span]:
    """Open a span. What goes wrong in it is noted by its kind alone: an error's words may quote content."""
    with _tracer.start_as_current_span(name, record_exception=False, set_status_on_exception=False) as opened:
        try:
            yield opened
        except Exception as error:
            opened.set_attribute("error.type", type(error).__name__)
            raise


def link(opened: Span, tenant: str, commit: int) -> None:
    """Link a span to the commit that it made."""
    if not opened.is_recording():
        return
    made = commit_link(tenant, commit)
    context = SpanContext(
        trace_id=made.trace_id, span_id=made.span_id, is_remote=True, trace_flags=TraceFlags(1)
    )
    opened.set_attribute("echoplane.tenant", tenant)
    opened.add_link(context, {"echoplane.commit": commit})


@contextmanager
def exporting(settings: Settings, *, role: str) -> Iterator[None]:
    """
    Send the spans of this process to where the settings say; what is left at the end is sent then.

    Raises:
        BadRequest: They are to be sent, and what sends them is not installed.
    """
    if settings.traces_url is None:
        yield
        return
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415
        from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415
    except ImportError as error:
        raise BadRequest(
            field="ECHOPLANE_TRACES_URL", reason="needs the extra: install echoplane[traces]"
        ) from error
    provider = TracerProvider(resource=Resource.create({"service.name": f"echoplane-{role}"}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=settings.traces_url)))
    trace.set_tracer_provider(provider)
    try:
        yield
    finally:
        provider.shutdown()
