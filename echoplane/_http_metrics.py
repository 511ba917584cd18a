"""Numbers for Prometheus: routes, statuses and states; no content, no tenant that the caller may not see."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, Metric, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from echoplane._health import Look


class Metrics:
    """The API's own registry; a process has one."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "echoplane_requests_total", "Requests answered.", ("route", "method", "status"),
            registry=self._registry,
        )  # fmt: skip
        self._seconds = Histogram(
            "echoplane_request_seconds", "Time to answer.", ("route", "method"), registry=self._registry
        )
        self._events = Counter(
            "echoplane_events_appended_total", "Events accepted by this process.", registry=self._registry
        )
        self._answers = Counter(
            "echoplane_answers_total", "Questions answered, by status.", ("status", "degraded"),
            registry=self._registry,
        )  # fmt: skip

        self._readings = Counter(
            "echoplane_readings_total", "Contexts read by the reader, by what came of it.",
            ("status", "failure"), registry=self._registry,
        )  # fmt: skip

    def observe(self, *, route: str, method: str, status: int, duration_seconds: float) -> None:
        self._requests.labels(route, method, str(status)).inc()
        self._seconds.labels(route, method).observe(duration_seconds)

    def appended(self, count: int) -> None:
        self._events.inc(count)

    def answered(self, *, status: str, degraded: bool) -> None:
        self._answers.labels(status, str(degraded).lower()).inc()

    def read(self, *, status: str, failure: str | None) -> None:
        self._readings.labels(status, failure or "").inc()

    def text(self, look: Look) -> bytes:
        """Return the exposition format, with what a look at the plane has found."""
        seen = CollectorRegistry()
        seen.register(_Seen(look))
        return generate_latest(self._registry) + generate_latest(seen)


class _Seen(Collector):
    """A look as families of samples: what is gone since the one before leaves no series behind."""

    def __init__(self, look: Look) -> None:
        self._look = look

    def collect(self) -> Iterator[Metric]:
        yield from self._totals()
        yield from self._by_projection()
        yield from self._depths()

    def _totals(self) -> Iterator[Metric]:
        found = self._look.projections
        yield GaugeMetricFamily(
            "echoplane_unfolded_commits", "Commits that wait to be folded, over all tenants and epochs.",
            value=sum(one.lag_commits for one in found),
        )  # fmt: skip
        yield GaugeMetricFamily(
            "echoplane_lag_seconds_max", "How long the oldest commit has waited to be folded, of any tenant.",
            value=max((one.lag_seconds for one in found), default=0.0),
        )  # fmt: skip
        yield GaugeMetricFamily(
            "echoplane_dead_letters", "Events that stop an epoch of a tenant.",
            value=sum(one.dead_letters for one in found),
        )  # fmt: skip
        yield GaugeMetricFamily(
            "echoplane_tenants", "Tenants there are.", value=len({one.tenant for one in found})
        )

    def _by_projection(self) -> Iterator[Metric]:
        """What the caller may see of each tenant; the rate of the counters is the rate of the fold."""
        labels = ("tenant", "epoch", "projector")
        lag = GaugeMetricFamily(
            "echoplane_projection_lag_commits", "Commits that an epoch has not folded.", labels=labels
        )
        seconds = GaugeMetricFamily(
            "echoplane_projection_lag_seconds", "How long the oldest of them has waited.", labels=labels
        )
        dead = GaugeMetricFamily(
            "echoplane_projection_dead_letters", "Events that stop an epoch.", labels=labels
        )
        commits = CounterMetricFamily(
            "echoplane_projection_commits", "Commits that an epoch has folded.", labels=labels
        )
        events = CounterMetricFamily(
            "echoplane_projection_events", "Events that an epoch has folded.", labels=labels
        )
        for one in self._look.shown:
            values = (one.tenant, str(one.epoch), one.projector)
            lag.add_metric(values, one.lag_commits)
            seconds.add_metric(values, one.lag_seconds)
            dead.add_metric(values, one.dead_letters)
            commits.add_metric(values, one.folded_commits)
            events.add_metric(values, one.folded_events)
        yield from (lag, seconds, dead, commits, events)

    def _depths(self) -> Iterator[Metric]:
        pools = GaugeMetricFamily(
            "echoplane_pool_connections", "Database connections of this process.", labels=("pool", "state")
        )
        for one in self._look.connections:
            pools.add_metric((one.pool, "in_use"), one.in_use)
            pools.add_metric((one.pool, "idle"), one.idle)
            pools.add_metric((one.pool, "allowed"), one.allowed)
        yield pools
        queue = self._look.queue
        yield GaugeMetricFamily("echoplane_queue_up", "Whether Redis answers.", value=int(queue is not None))
        if queue is None:
            return
        yield GaugeMetricFamily("echoplane_queue_messages", "Wake-ups in the stream.", value=queue.messages)
        yield GaugeMetricFamily(
            "echoplane_queue_pending", "Wake-ups read and not acknowledged.", value=queue.pending
        )
        if queue.unread is not None:
            yield GaugeMetricFamily(
                "echoplane_queue_unread", "Wake-ups that nobody has read.", value=queue.unread
            )
