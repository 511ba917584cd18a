"""Numbers about the API, for Prometheus: routes, statuses and states; no tenant and no content."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest


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
        self._lag = Gauge(
            "echoplane_unfolded_commits", "Commits of all tenants that wait to be folded.",
            registry=self._registry,
        )  # fmt: skip
        self._dead_letters = Gauge(
            "echoplane_dead_letters", "Events that stop a tenant's generation.", registry=self._registry
        )

    def observe(self, *, route: str, method: str, status: int, duration_seconds: float) -> None:
        self._requests.labels(route, method, str(status)).inc()
        self._seconds.labels(route, method).observe(duration_seconds)

    def appended(self, count: int) -> None:
        self._events.inc(count)

    def answered(self, *, status: str, degraded: bool) -> None:
        self._answers.labels(status, str(degraded).lower()).inc()

    def stands(self, *, unfolded_commits: int, dead_letters: int) -> None:
        self._lag.set(unfolded_commits)
        self._dead_letters.set(dead_letters)

    def text(self) -> bytes:
        """Return the exposition format."""
        return generate_latest(self._registry)
