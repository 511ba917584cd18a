"""Contracts are refused with the field and the reason, bounded in number, and read in every stored format."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from datetime import timedelta
from pathlib import Path

import pytest

from contracts.errors import BadRequest, LimitExceeded
from contracts.grants import LOCAL_GRANT
from contracts.relations import Supersession, ValueType
from ledger import log
from ledger._relations import contract_bytes, contract_of, unregistered
from ledger.write import register_contract

DATA = Path(__file__).parents[1] / "data"


INAPPLICABLE = [
    ("relation", {"relation": "same_as"}),
    ("relation", {"relation": " "}),
    ("value_type", {"value_type": "colour"}),
    ("unit", {"value_type": "number", "unit": "EUR"}),
    ("unit", {"value_type": "number", "unit": " "}),
    ("unit", {"value_type": "text", "unit": "km"}),
    ("unit", {"unit": "km"}),
    ("schema", {"value_type": "json"}),
    ("schema", {"value_type": "json", "schema": '{"pattern":"(a+)+"}'}),
    ("schema", {"value_type": "text", "schema": "{}"}),
    ("normalizer", {"normalizer": "guess"}),
    ("normalizer", {"value_type": "number", "normalizer": "casefold"}),
    ("conflict_window", {"conflict_window": timedelta(seconds=-1)}),
    ("conflict_window", {"conflict_window": timedelta(days=40_000)}),
    ("authority", {"authority": ()}),
    ("authority", {"authority": (("ann",), ())}),
    ("authority", {"authority": (("derived",), ("*",))}),
    ("authority", {"authority": (("*",), ("assistant", "class:derived"))}),
    ("authority", {"authority": (("ann",), ("ann",))}),
    ("authority", {"authority": (("actor:",),)}),
    ("authority", {"authority": (("",),)}),
    ("authority", {"authority": tuple((f"a{n}",) for n in range(65))}),
    ("supersession", {"supersession": (("user", Supersession.ANY), ("user", Supersession.ANY))}),
    ("supersession", {"supersession": (("", Supersession.ANY),)}),
]


async def test_a_contract_that_cannot_be_applied_is_refused_with_its_field(db):
    for field, wrong in INAPPLICABLE:
        contract = replace(unregistered("range"), **wrong)

        with pytest.raises(BadRequest) as caught:
            await register_contract(db, "acme", contract, stream="c", actor_id="op", grant=LOCAL_GRANT)

        assert caught.value.field == field, wrong
        async with db.snapshot("acme") as conn:
            assert (await log.head(conn)).commit == 0


async def test_a_tenant_registers_only_so_many_relations(db, monkeypatch):
    monkeypatch.setattr("ledger._registry.CONTRACTS_MAX", 2)

    async def register(relation, normalizer):
        contract = replace(unregistered(relation), normalizer=normalizer)
        await register_contract(db, "acme", contract, stream="c", actor_id="op", grant=LOCAL_GRANT)

    for relation, normalizer in [("a", "words"), ("b", "words"), ("a", "exact")]:
        await register(relation, normalizer)

    with pytest.raises(LimitExceeded):
        await register("c", "words")


def test_stored_contracts_of_every_format_are_read():
    stored = json.loads((DATA / "contracts_stored.json").read_text(encoding="utf-8"))

    for one in stored:
        contract = contract_of(one["form"].encode())
        said = {**asdict(contract), "conflict_window": contract.conflict_window.total_seconds()}
        assert json.loads(json.dumps(said)) == one["contract"], one["form"]
    newest = [one["form"] for one in stored if '"format":2' in one["form"]]
    assert [contract_bytes(contract_of(form.encode())).decode() for form in newest] == newest


@pytest.mark.parametrize(
    "change",
    [{"format": 3}, {"format": None}, {"units": 2}, {"value_type": "colour"}, {"more": 1}, {"unit": 5}],
)
def test_a_stored_contract_that_this_version_cannot_apply_is_not_guessed_at(change):
    form = json.loads(contract_bytes(replace(unregistered("range"), value_type=ValueType.NUMBER, unit="km")))

    with pytest.raises(BadRequest):
        contract_of(json.dumps(form | change).encode())
