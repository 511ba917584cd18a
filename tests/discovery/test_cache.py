"""An index in a file: the same proposals from it, and nothing from it once an event in it is erased."""

from __future__ import annotations

import asyncio

import pytest

from contracts.errors import Unavailable
from discovery import _cache
from discovery._cache import IndexCache
from discovery._index import TenantIndex
from discovery._keeper import Keeper
from tests.discovery.test_erase_index import SECRET, Erasing, say_erased
from tests.discovery.test_keeper import TALK, Kept, until_embedded
from tests.discovery.values import WordEmbedder, emit, found, project, timeless, turn


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(_cache, "CACHED_UNITS_MIN", 2)
    return tmp_path / "index"


@pytest.fixture
def read_from_log(monkeypatch):
    """Events that are read into any index."""
    added = []
    add = TenantIndex.add
    monkeypatch.setattr(TenantIndex, "add", lambda self, event: (added.append(event), add(self, event)))
    return added


async def until_kept(folder):
    async with asyncio.timeout(60):
        while not list(folder.glob("*.index")):
            await asyncio.sleep(0.02)


async def kept(db, folder, cut, units, text="The old piano in the cellar"):
    """Load a tenant, wait for its vectors and its file, and return a proposal."""
    async with Kept(db, WordEmbedder(), cache=IndexCache(folder)) as running:
        await running.ask(text, cut)
        await until_embedded(running.keeper, units)
        await until_kept(folder)
        return await running.ask(text, cut)


async def test_a_restart_reads_the_file_and_only_what_came_after_it_from_the_log(db, folder, read_from_log):
    await emit(db, *TALK)
    before = await kept(db, folder, await project(db), 12)
    read_from_log.clear()

    again = await kept(db, folder, 12, 12)
    assert read_from_log == []
    (newer,) = await emit(db, turn("A zeppelin landed."))
    later = await kept(db, folder, await project(db), 13, "zeppelin")

    assert timeless(again) == timeless(before)
    assert len(read_from_log) == 1
    assert found(later)[0] == newer


async def test_nothing_is_read_from_a_file_once_an_event_in_it_is_erased(db, owner_engine, folder):
    ids = await emit(db, turn(f"{SECRET} stands in the hall."), turn("The chair is old."))
    await kept(db, folder, await project(db), 2)
    (file,) = folder.glob("*.index")
    assert SECRET.encode() not in file.read_bytes()

    async with Erasing(owner_engine, ids[0]):
        pass
    # The data key is gone and nobody has said so yet: the file does not open all the same.
    assert await IndexCache(folder).load(db, "acme", "words:1") is None
    assert not list(folder.iterdir())


async def test_an_index_that_an_erasure_overtook_is_not_written(db, owner_engine, folder):
    ids = await emit(db, turn(f"{SECRET} sleeps."), turn("The chair is old."))
    async with Kept(db, None) as running:
        await running.ask("chair", 2)
        index = running.keeper._held["acme"].index
        async with Erasing(owner_engine, ids[0]):
            pass
        await say_erased(db, ids[0])

        assert not await IndexCache(folder).save(db, "acme", None, index)

    assert not folder.exists()


async def test_a_name_from_a_claim_past_what_was_read_of_the_log_is_in_no_file(db, folder):
    cache = IndexCache(folder)
    await emit(db, *TALK[:3])
    async with Kept(db, None) as running:
        await running.ask("lamp", await project(db))
        held = running.keeper._held["acme"]
        # Appended and folded between the last page of the log and the claims.
        await emit(db, turn("Moved!", claims=[{"entity": SECRET, "relation": "at", "value": "Lyon"}]))
        await project(db)
        await running.keeper._read_claims("acme", held.index, 1)
        assert any(SECRET in names for names in held.index.names.at(4).entities.values())

        assert not await cache.save(db, "acme", None, held.index)
        assert not folder.exists()
        await running.ask("lamp", 4)
        assert await cache.save(db, "acme", None, held.index)


async def test_a_file_is_read_once_for_all_who_ask_and_to_its_end_after_they_gave_up(
    db, folder, read_from_log
):
    class Slow(IndexCache):
        async def load(self, *named):
            loads.append(named)
            await opened.wait()
            return await super().load(*named)

    await emit(db, *TALK[:3])
    await kept(db, folder, await project(db), 3)
    read_from_log.clear()
    loads, opened = [], asyncio.Event()
    keeper = Keeper(db, embedder=WordEmbedder(), cache=Slow(folder))
    try:
        asked = [keeper.ready("acme", cut=3, epoch=None, wait_seconds=0.05) for _ in range(4)]
        answers = await asyncio.gather(*asked, return_exceptions=True)
        assert [type(answer) for answer in answers] == [Unavailable] * 4
        opened.set()
        index = await keeper.ready("acme", cut=3, epoch=None, wait_seconds=60)
    finally:
        keeper.close()

    assert (len(loads), len(index), len(read_from_log)) == (1, 3, 0)


async def test_what_a_kill_left_of_a_file_goes_at_the_start_and_with_its_tenant(db, folder):
    folder.mkdir()
    cache = IndexCache(folder)
    path = cache._path("acme", None)
    left = path.with_name(f"{path.name}x1.part")
    left.touch()
    cache.drop("acme")
    assert not left.exists()

    left.touch()
    IndexCache(folder)
    assert not left.exists()


def test_another_build_is_another_word_list_or_stemmer_too(monkeypatch):
    digests = [_cache._build_digest()]
    for changed in _cache._BUILT_WITH:
        monkeypatch.setattr(_cache, "version", lambda name, changed=changed: "0" if name == changed else "1")
        digests.append(_cache._build_digest())

    assert len(set(digests)) == 1 + len(_cache._BUILT_WITH)


async def test_the_file_goes_when_the_erasure_is_seen(db, owner_engine, folder):
    ids = await emit(db, turn(f"{SECRET} sleeps."), turn("The chair is old."))
    await kept(db, folder, await project(db), 2)
    async with Kept(db, WordEmbedder(), cache=IndexCache(folder)) as running:
        await running.ask("chair", 2)
        async with Erasing(owner_engine, ids[0]):
            pass
        await say_erased(db, ids[0])
        await running.keeper.wake("acme")

        assert not list(folder.glob("*.index"))


def flipped(data: bytes) -> bytes:
    return data[:-30] + bytes([data[-30] ^ 1]) + data[-29:]


@pytest.mark.parametrize(
    "harm",
    [flipped, lambda data: data[:-40], lambda data: b"", lambda data: data.replace(b'"build"', b'"built"')],
)
async def test_a_file_that_was_changed_is_dropped_and_the_log_read(db, folder, read_from_log, harm):
    await emit(db, *TALK[:3])
    before = await kept(db, folder, await project(db), 3)
    (file,) = folder.glob("*.index")
    file.write_bytes(harm(file.read_bytes()))
    read_from_log.clear()

    after = await kept(db, folder, 3, 3)

    assert len(read_from_log) == 3
    assert timeless(after) == timeless(before)


async def test_another_model_or_another_tenant_reads_no_file(db, folder):
    await emit(db, *TALK[:3])
    await kept(db, folder, await project(db), 3)
    (file,) = folder.glob("*.index")
    cache = IndexCache(folder)

    assert await cache.load(db, "acme", "words:2") is None
    file.rename(cache._path("other", "words:1"))
    assert await cache.load(db, "other", "words:1") is None


async def test_files_are_bounded_and_those_written_longest_ago_go(db, folder, monkeypatch):
    await emit(db, *TALK[:3])
    await kept(db, folder, await project(db), 3)
    (first,) = folder.glob("*.index")
    monkeypatch.setattr(_cache, "CACHE_BYTES_MAX", first.stat().st_size + 1)
    await emit(db, *TALK[:3], tenant="other")
    async with Kept(db, WordEmbedder(), cache=IndexCache(folder)) as running:
        await running.ask("lamp", 3, "other")
        await until_embedded(running.keeper, 3)
        async with asyncio.timeout(60):
            while first.exists():
                await asyncio.sleep(0.02)
