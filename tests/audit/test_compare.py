import hashlib
import json
from dataclasses import replace
from datetime import timedelta

import pytest
import rfc8785

from audit._compare import compare, stored_faults
from contracts.answers import Answer, AnswerStatus
from contracts.contexts import Mark
from contracts.trails import Rebuilt, Trail, Verdict
from tests.packing.values import VIEW, closure, evidence, key, member, named, packed, proposal, question

LINES = [
    evidence(1, "I live in Boston.", mark=Mark.SUPERSEDED, marked_commit=3),
    evidence(3, "I moved to Lyon."),
]
CLOSURES = [closure("key", 1, 3, required=True)]


def the_pack(**fields):
    values = {"closures": CLOSURES, "lines": LINES, "resolutions": [key(member(3))]} | fields
    return packed(values.pop("closures"), values.pop("lines"), **values)


PACK = the_pack()
TRAIL = Trail(
    trail_id="t1",
    tenant="acme",
    question=question(),
    view=VIEW,
    proposal=proposal(named()),
    configuration_hash="0" * 64,
    context_hash=PACK.context_hash,
    content_hash=PACK.content_hash,
    answer_digest="ab",
    status=AnswerStatus.EVIDENCE,
)
ANSWER = Answer(status=AnswerStatus.EVIDENCE, value=None, cites=(), reason="no_named_key")


def replayed(pack=PACK, *, answer_digest="ab", erased=(), trail=TRAIL):
    rebuilt = Rebuilt(
        pack=pack, answer=ANSWER, answer_digest=answer_digest, resolutions=(), erased_event_ids=tuple(erased)
    )
    return compare(context_hash=PACK.context_hash, form=PACK.form, trail=trail, rebuilt=rebuilt)


def forged(change):
    """A pack whose form was changed and whose hashes were made to fit."""
    form = json.loads(PACK.form)
    change(form)
    content_hash = hashlib.sha256(rfc8785.dumps(form["content"])).hexdigest()
    form["content_hash"] = content_hash
    written = rfc8785.dumps(form)
    return replace(
        PACK, form=written, content_hash=content_hash, context_hash=hashlib.sha256(written).hexdigest()
    )


def leaves(value, path=()):
    match value:
        case dict():
            items = value.items()
        case list():
            items = enumerate(value)
        case _:
            yield path
            return
    for name, inner in items:
        yield from leaves(inner, (*path, name))


def test_the_same_bytes_and_answer_are_identical():
    report = replayed()

    assert (report.verdict, report.differences) == (Verdict.IDENTICAL, ())
    assert report.replayed_hash == report.context_hash == PACK.context_hash


LEAVES = [path for path in leaves(json.loads(PACK.form)) if path != ("content_hash",)]


@pytest.mark.parametrize("path", LEAVES, ids=str)
def test_a_change_of_any_single_part_is_a_mismatch_that_names_it(path):
    def change(form):
        *outer, last = path
        for name in outer:
            form = form[name]
        form[last] = f"{form[last]}x" if isinstance(form[last], str) else [form[last]]

    report = replayed(forged(change))

    named_there = "".join(f"[{name}]" if isinstance(name, int) else f".{name}" for name in path)[1:]
    assert report.verdict == Verdict.MISMATCH
    assert named_there in report.differences


def test_a_true_that_became_a_one_is_a_difference():
    def change(form):
        form["keys"][0]["named"] = 1

    assert "keys[0].named" in replayed(forged(change)).differences


def test_a_dropped_or_added_field_is_a_difference():
    assert replayed(forged(lambda form: form.pop("counter"))).differences == ("counter",)
    assert replayed(forged(lambda form: form.update(more=1))).differences == ("more",)


def test_another_answer_from_the_same_context_is_a_mismatch():
    report = replayed(answer_digest="ac")

    assert (report.verdict, report.differences) == (Verdict.MISMATCH, ("answer",))


def test_a_packer_whose_word_for_its_hash_is_wrong_is_not_believed():
    report = replayed(replace(PACK, content_hash="0" * 64))

    assert (report.verdict, report.differences) == (Verdict.MISMATCH, ("replayed_hash",))


def test_an_erased_event_redacts_what_stood_on_it():
    pack = the_pack(closures=[closure("event-003", 3)], lines=[LINES[1]], resolutions=[])

    report = replayed(pack, answer_digest="other", erased=["event-001"])

    assert (report.verdict, report.erased_event_ids) == (Verdict.REDACTED, ("event-001",))
    assert replayed(pack, answer_digest="other").verdict == Verdict.MISMATCH


@pytest.mark.parametrize(
    "pack",
    [
        the_pack(closures=[closure("a", 3)], lines=[replace(LINES[1], text_digest="00")], resolutions=[]),
        the_pack(closures=[closure("a", 3)], lines=[replace(LINES[1], actor_id="Bob")], resolutions=[]),
        the_pack(closures=[closure("a", 3)], lines=[LINES[1]], view=replace(VIEW, cut=39)),
        the_pack(closures=[closure("a", 3)], lines=[LINES[1]], proposal=proposal(named(), events=(1,))),
        the_pack(view=replace(VIEW, valid_at=VIEW.valid_at + timedelta(seconds=1))),
        the_pack(question=question(disclose_conflicts=True)),
        the_pack(question=question(disclose_conflicts=False, text="?")),
    ],
)
def test_an_erasure_excuses_nothing_that_does_not_stand_on_it(pack):
    assert replayed(pack, erased=["event-001"]).verdict == Verdict.MISMATCH


def test_an_erased_event_that_is_shown_again_is_a_mismatch():
    assert replayed(the_pack(resolutions=[]), erased=["event-001"]).verdict == Verdict.MISMATCH


@pytest.mark.parametrize(
    ("fields", "faults"),
    [
        ({}, ()),
        ({"form": PACK.form + b" "}, ("stored_form",)),
        ({"form": b"{}"}, ("stored_form", "stored_content_hash")),
        ({"form": b"\xff"}, ("stored_form", "stored_content_hash")),
        ({"content_hash": "0" * 64}, ("stored_content_hash", "trail.content_hash")),
        ({"context_hash": "0" * 64}, ("stored_form", "trail.context_hash")),
        ({"trail": replace(TRAIL, context_hash="0" * 64)}, ("trail.context_hash",)),
        ({"trail": replace(TRAIL, content_hash="0" * 64)}, ("trail.content_hash",)),
    ],
)
def test_stored_rows_that_contradict_each_other_are_named(fields, faults):
    values = {
        "context_hash": PACK.context_hash,
        "content_hash": PACK.content_hash,
        "form": PACK.form,
        "trail": TRAIL,
    }

    assert stored_faults(**(values | fields)) == faults
