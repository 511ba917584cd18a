"""Spans of append, relay and fold, linked by the commits that they are about, if somebody exports them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from opentelemetry import trace
from opentelemetry.trace import Span, SpanContext, TraceFlags

from contracts.limits import SPAN_LINKS_MAX
from contracts.traces import commit_link

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


def link(opened: Span, tenant: str, commits: Iterable[int]) -> None:
    """Link a span to commits of a tenant, the first `SPAN_LINKS_MAX` of them."""
    if not opened.is_recording():
        return
    opened.set_attribute("echoplane.tenant", tenant)
    for commit, _ in zip(commits, range(SPAN_LINKS_MAX), strict=False):
        made = commit_link(tenant, commit)
        context = SpanContext(
            trace_id=made.trace_id, span_id=made.span_id, is_remote=True, trace_flags=TraceFlags(1)
        )
        opened.add_link(context, {"echoplane.commit": commit})
