"""Discovery's index through its door: dropped and made anew, by whoever may, and no answer changes."""

from __future__ import annotations

from contracts.wire import SCHEMAS

QUESTION = {"question": "Where does Ann live?"}


async def test_an_index_is_made_anew_and_answers_stay(client, remember, turn, discovery):
    await remember("shop", turn("I live in Lyon."), turn("I like tea."))
    before = (await client.post("/v1/shop/ask", json=QUESTION)).json()

    answer = await client.post("/v1/shop/reindex")

    assert answer.status_code == 202
    assert SCHEMAS["reindex-answer"].model_validate_json(answer.content).tenant == "shop"
    after = (await client.post("/v1/shop/ask", json=QUESTION)).json()
    assert after["answer"] == before["answer"]
    assert not after["degraded"]


async def test_there_is_no_index_of_a_tenant_that_is_not_there_and_none_without_discovery(
    client, remember, turn
):
    assert (await client.post("/v1/nobody/reindex")).status_code == 404
    await remember("shop", turn("I live in Lyon."))
    assert (await client.post("/v1/shop/reindex")).status_code == 503
