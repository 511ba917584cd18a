"""How a plane is: what is wrong and why at `/readyz`, and as numbers at `/metrics`."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from prometheus_client.parser import text_string_to_metric_families
from redis.asyncio import Redis

from contracts.errors import Poisoned, Unavailable
from contracts.grants import Grant, Right
from echoplane._health import LAG_SUSPECT_SECONDS, readiness
from ledger.write import fold
from projection import RuleProjector, queue
from projection._queue import GROUP, STREAM
from tests.projection.choking import Choking


@pytest.fixture
async def shop(plane, remember, turn):
    """A tenant of three events, of which one is folded and the next one stops it."""
    await remember("shop", turn("I live in Lyon."), turn("poison"), turn("I moved to Ghent."), folded=False)
    with pytest.raises(Poisoned):
        await fold(plane.database, "shop", Choking(), events_max=100)


def later(plane, **more):
    """The plane as it is a while from now."""
    clock = plane.database.clock
    return replace(plane, database=replace(plane.database, clock=lambda: clock() + timedelta(**more)))


def samples(text):
    return {
        (one.name, tuple(sorted(one.labels.items()))): one.value
        for family in text_string_to_metric_families(text)
        for one in family.samples
    }


async def measured(client):
    answer = await client.get("/metrics")
    assert answer.status_code == 200, answer.text
    return samples(answer.text)


async def test_each_projection_says_how_far_it_is_behind_and_how_fast_it_goes(client, home, shop):
    found = await measured(client)

    def of(name, tenant):
        labels = {"tenant": tenant, "epoch": "1", "projector": RuleProjector().version}
        return found[f"echoplane_projection_{name}", tuple(sorted(labels.items()))]

    assert [of(name, "home") for name in ("lag_commits", "lag_seconds", "dead_letters")] == [0, 0, 0]
    assert [of(name, "shop") for name in ("lag_commits", "dead_letters")] == [2, 1]
    assert of("lag_seconds", "shop") > 0
    assert (of("commits_total", "home"), of("events_total", "home")) == (2, 2)
    assert (found["echoplane_unfolded_commits", ()], found["echoplane_dead_letters", ()]) == (2, 1)
    assert found["echoplane_lag_seconds_max", ()] > 0
    assert found["echoplane_tenants", ()] == 2


async def test_pools_and_the_queue_say_how_full_they_are(client, plane, home):
    async with Redis.from_url(plane.servers.redis_url) as redis:
        await redis.xgroup_create(STREAM, GROUP, id="0", mkstream=True)
        for _ in range(3):
            await redis.xadd(STREAM, {"a": "b"})
        await redis.xreadgroup(GROUP, "someone", {STREAM: ">"}, count=2)

    found = await measured(client)

    names = ("messages", "pending", "unread", "up")
    assert [found[f"echoplane_queue_{name}", ()] for name in names] == [3, 2, 1, 1]
    assert found["echoplane_pool_connections", (("pool", "plane"), ("state", "allowed"))] > 0
    assert found["echoplane_pool_connections", (("pool", "plane"), ("state", "in_use"))] == 0


async def test_a_tenant_is_named_to_whom_it_may_be_and_to_nobody_else(client, plane, home, shop):
    everyone = Grant(tenant="shop", rights=frozenset({Right.ASK}), actors=frozenset(), classes=frozenset())
    token = (await plane.make_token("shop", everyone, label="scraper")).token

    client.headers["authorization"] = f"Bearer {token}"
    own = (await client.get("/metrics")).text
    client.headers["authorization"] = "Bearer nonsense"
    assert (await client.get("/metrics")).status_code == 401
    del client.headers["authorization"]
    public = (await client.get("/metrics")).text

    assert 'tenant="shop"' in own
    assert 'tenant="home"' not in own
    assert "tenant=" not in public
    assert samples(public)["echoplane_unfolded_commits", ()] == 2


async def test_ready_says_what_stops_a_tenant_and_that_nothing_folds(client, shop):
    parts = (await client.get("/readyz")).json()["parts"]

    assert parts["fold"] == "stopped for 1 tenants by an event that cannot be folded: see `dead list`"
    assert parts["worker"].startswith("not started by this plane")
    assert (parts["database"], parts["redis"]) == ("ok", "ok")


async def test_ready_says_how_far_the_fold_is_behind(plane, remember, turn):
    await remember("home", turn("I live in Lyon."), folded=False)

    assert (await readiness(plane)).parts["fold"] == "ok"
    found = await readiness(later(plane, seconds=LAG_SUSPECT_SECONDS + 5))

    assert found.ready
    assert found.parts["fold"].startswith("behind for 1 epochs, by 3")


async def test_a_plane_without_redis_or_database_says_so(plane, home):
    nowhere = replace(plane.servers, redis_url="redis://127.0.0.1:1/0")
    with pytest.raises(Unavailable):
        await queue(nowhere.redis_url)

    without_redis = await readiness(replace(plane, servers=nowhere))
    await plane.database.relay.dispose()
    broken = replace(plane.database, relay=_Down())
    without_database = await readiness(replace(plane, database=broken))

    assert without_redis.ready
    assert without_redis.parts["redis"].startswith("down: redis is unavailable")
    assert not without_database.ready
    assert without_database.parts["database"].startswith("down: database is unavailable")
    assert without_database.parts["database"].endswith("[unavailable]")


class _Down:
    """A pool whose server is away."""

    def execution_options(self, **_):
        return self

    def connect(self):
        raise Unavailable(part="database", reason="connection lost or refused")
