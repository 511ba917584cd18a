"""Whoever follows a log sees every commit once, whole and in order, wherever it begins again."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from contracts.erasures import ErasureRequest
from contracts.errors import BadRequest, Busy, NotFound
from contracts.events import ErasedEvent
from contracts.grants import LOCAL_GRANT
from ledger import _follow, _news, log
from ledger.erase import erase
from projection import RuleProjector
from tests.ledger.log_drafts import append, draft


async def taken(db, count: int, *, tenant: str = "acme", **start):
    """Follow until so many commits have come."""
    found = []
    async with asyncio.timeout(60), log.following(db, tenant, **start) as commits:
        while len(found) < count:
            found.append(await anext(commits))
    return found


def said(commit):
    return [event.draft.text for event in commit.events]


async def test_commits_come_whole_and_in_order_from_wherever_one_begins(db):
    for texts in (["a"], ["b", "c"], ["d"]):
        await append(db, *map(draft, texts))

    everything = await taken(db, 3)

    assert [said(commit) for commit in everything] == [["a"], ["b", "c"], ["d"]]
    assert [commit.commit for commit in await taken(db, 2, after_commit=1)] == [2, 3]
    assert [said(commit) for commit in await taken(db, 2, after_position=2)] == [["c"], ["d"]]
    assert await taken(db, 1, after_position=everything[1].position) == everything[2:]
    assert await log.read_commit(db, "acme", 2) == everything[1]


async def test_a_follower_that_waits_is_woken(plane_db, monkeypatch):
    # So long that only news can have woken it.
    monkeypatch.setattr(_follow, "POLL_SECONDS", 3_600)
    waiting = asyncio.create_task(taken(plane_db, 2))
    async with asyncio.timeout(60):
        while not any(task.get_name() == "news" for task in asyncio.all_tasks()):
            await asyncio.sleep(0)
        # What was appended before anybody listened is looked for once the listening begins.
        for text in ("a", "b"):
            await append(plane_db, draft(text))
            await asyncio.sleep(0)

        assert [said(commit) for commit in await waiting] == [["a"], ["b"]]


async def test_a_follower_without_news_looks_for_itself(plane_db, monkeypatch):
    monkeypatch.setattr(_follow, "POLL_SECONDS", 0.01)
    monkeypatch.setattr(_news.News, "_wake", lambda *_: None)
    waiting = asyncio.create_task(taken(plane_db, 1))

    await append(plane_db, draft("a"))

    assert said((await waiting)[0]) == ["a"]


@pytest.mark.parametrize("page", [3, 1_000])
async def test_nothing_is_skipped_or_repeated_under_concurrent_appends(plane_db, monkeypatch, page):
    monkeypatch.setattr(_follow, "POLL_SECONDS", 0.01)
    monkeypatch.setattr(_follow, "PAGE_EVENTS_MAX", page)

    async def write(writer: int) -> None:
        for number in range(10):
            texts = [f"{writer}-{number}-{one}" for one in range(1 + (writer + number) % 3)]
            await append(plane_db, *(draft(text, stream=f"s{writer}") for text in texts))

    async def resume() -> list[log.FollowedCommit]:
        """Follow, leave after each few commits, and go on from the last one."""
        found: list[log.FollowedCommit] = []
        while len(found) < 40:
            after = found[-1].position if found else 0
            found += await taken(plane_db, min(1 + len(found) % 7, 40 - len(found)), after_position=after)
        return found

    *_, once, again = await asyncio.gather(*map(write, range(4)), taken(plane_db, 40), resume())

    assert [commit.commit for commit in once] == list(range(1, 41))
    assert again == once
    positions = [event.position for commit in once for event in commit.events]
    assert positions == list(range(1, len(positions) + 1))


async def test_erased_events_come_as_erased(db):
    receipt = await append(db, draft("a"), draft("b"))
    request = ErasureRequest(subject=None, event_ids=receipt.event_ids[:1])

    await erase(db, "acme", RuleProjector(), request, grant=LOCAL_GRANT)

    first, second = await taken(db, 2)
    assert [type(event) for event in first.events] == [ErasedEvent, type(second.events[0])]
    assert first.events[1].draft.text == "b"


async def test_tenants_are_followed_apart(db):
    await log.create_tenant(db, "other")
    await append(db, draft("theirs"), tenant="other")
    await append(db, draft("ours"))

    assert [said(commit) for commit in await taken(db, 1)] == [["ours"]]
    assert [said(commit) for commit in await taken(db, 1, tenant="other")] == [["theirs"]]


async def test_so_many_follow_and_no_more(db, monkeypatch):
    monkeypatch.setattr(_news, "FOLLOWERS_MAX", 2)
    async with contextlib.AsyncExitStack() as stack:
        for _ in range(2):
            await stack.enter_async_context(log.following(db, "acme"))
        with pytest.raises(Busy) as refused:
            await stack.enter_async_context(log.following(db, "acme"))
        assert refused.value.retry_after_seconds > 0
    assert db.news.followers_count == 0
    async with log.following(db, "acme"):
        assert db.news.followers_count == 1


async def test_where_nothing_is_nobody_begins(db):
    await append(db, draft("a"))

    for start in ({"after_position": 2}, {"after_commit": 2}, {"after_position": -1}, {"after_commit": -1}):
        with pytest.raises(BadRequest):
            await taken(db, 1, **start)
    with pytest.raises(NotFound):
        await taken(db, 1, tenant="nobody")
    with pytest.raises(NotFound):
        await log.read_commit(db, "acme", 2)
    assert db.news.followers_count == 0


async def test_a_stream_is_read_by_version(db):
    for number in range(5):
        await append(db, draft(f"a{number}", stream="a"), draft(f"b{number}", stream="b"))

    async def texts(**asked):
        return [event.draft.text for event in await log.read_stream(db, "acme", "a", **asked)]

    assert await texts(after_version=0, limit=2) == ["a0", "a1"]
    assert await texts(after_version=2, limit=100) == ["a2", "a3", "a4"]
    assert await texts(after_version=5, limit=100) == []
    assert await log.read_stream(db, "acme", "c", after_version=0, limit=1) == []


async def test_pages_of_followers_are_bounded_in_bytes_and_hold_whole_commits(db, monkeypatch):
    monkeypatch.setattr(_follow, "PAGE_BYTES_MAX", 1_300)
    pages = []
    read = _follow.read_stored

    async def counted(*of, **more):
        pages.append(await read(*of, **more))
        return pages[-1]

    monkeypatch.setattr(_follow, "read_stored", counted)
    large = ["x" * 1_000, "y" * 1_000, "z" * 1_000]
    for texts in (["a"], ["b"], large, ["c"], ["d"]):
        await append(db, *map(draft, texts))

    assert [said(commit) for commit in await taken(db, 5)] == [["a"], ["b"], large, ["c"], ["d"]]
    assert [[one.position for one in page] for page in pages] == [[1, 2], [3, 4, 5], [6, 7]]
    assert said(await log.read_commit(db, "acme", 3)) == large
    # A position inside of a commit: the rest of it comes whole too.
    assert [said(commit) for commit in await taken(db, 2, after_position=3)] == [large[1:], ["c"]]


async def test_the_iterator_alone_ends_when_it_is_closed(db):
    await append(db, draft("a"))
    commits = log.follow(db, "acme")

    assert said(await anext(commits)) == ["a"]
    await commits.aclose()

    assert db.news.followers_count == 0
