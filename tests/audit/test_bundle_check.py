"""A bundle is checked by whoever has nothing but the bundle, and nothing in it can be turned quietly."""

from __future__ import annotations

import getpass
import hashlib
import json
import socket
from pathlib import Path

import pytest

from audit import check_bundle
from tests.audit.bundles import bundle

ROOT = Path(__file__).resolve().parents[2]


def edit(path, change):
    path.chmod(0o644)
    path.write_bytes(change(path.read_bytes()))


def resealed(folder):
    """Write the manifest anew so that it fits the files, and give the folder the address of that."""
    path = folder / "manifest.json"
    manifest = json.loads(path.read_bytes())
    for one in manifest["files"]:
        raw = (folder / one["path"]).read_bytes()
        one |= {"sha256": hashlib.sha256(raw).hexdigest(), "bytes_count": len(raw)}
        if one["path"] == "predictions.jsonl":
            manifest["sealed"] = one["sha256"]
    raw = json.dumps(manifest, sort_keys=True, separators=(",", ":")).encode()
    path.write_bytes(raw)
    return folder.rename(folder.with_name(f"small-{hashlib.sha256(raw).hexdigest()[:16]}"))


def test_a_bundle_holds_wherever_it_is_carried(tmp_path):
    folder = bundle(tmp_path / "here")
    elsewhere = folder.rename(tmp_path / folder.name)

    report = check_bundle(elsewhere)

    assert (report.holds, report.problems) == (True, ())
    assert report.checked == {"address": 2, "files": 8, "seal": 2, "rows": 28, "measures": 9}


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("rows.jsonl", lambda raw: raw.replace(b'"hit@10":0', b'"hit@10":1'), "is scored otherwise"),
        ("rows.jsonl", lambda raw: b"".join(raw.splitlines(keepends=True)[1:]), "cells are there"),
        ("gold.jsonl", lambda raw: raw.replace(b'["h1t1"]', b'["h1t1000"]'), "is scored otherwise"),
        ("gold.jsonl", lambda raw: raw + raw.splitlines(keepends=True)[0], "a line stands twice"),
        ("predictions.jsonl", lambda raw: raw.replace(b"timeout", b"excused"), "is scored otherwise"),
        ("measures.jsonl", lambda raw: raw.replace(b'"n":12', b'"n":13', 1), "its rows give"),
        ("measures.jsonl", lambda raw: raw.replace(b'"low":0.', b'"low":0.9', 1), "its rows give"),
        ("costs.jsonl", lambda raw: raw.replace(b'"query_ms":21', b'"query_ms":1'), "is scored otherwise"),
        ("lost.jsonl", lambda raw: raw + b"What did Ann say?\n", "not such a record"),
    ],
)
def test_what_is_turned_in_one_place_contradicts_another_even_if_every_digest_is_made_to_fit(
    tmp_path, name, change, said
):
    folder = bundle(tmp_path)

    edit(folder / name, change)

    assert any("its bytes are not those" in problem for problem in check_bundle(folder).problems)
    report = check_bundle(resealed(folder))
    assert not report.holds
    assert all("bytes" not in problem for problem in report.problems)
    assert any(said in problem for problem in report.problems)


def test_a_manifest_that_is_turned_no_longer_has_its_address(tmp_path):
    folder = bundle(tmp_path)

    edit(folder / "manifest.json", lambda raw: raw.replace(b"visible development", b"fresh confirmatory"))

    assert "address: the folder's name is not its manifest's" in check_bundle(folder).problems


def test_gold_that_was_read_before_the_seal_is_said(tmp_path):
    folder = bundle(tmp_path)

    edit(folder / "manifest.json", lambda raw: raw.replace(b'"gold_at":"2026', b'"gold_at":"2025'))

    assert "seal: gold was read before the predictions were sealed" in check_bundle(resealed(folder)).problems


def test_what_is_beside_the_files_of_a_bundle_is_said(tmp_path):
    folder = bundle(tmp_path)
    (folder / "questions.txt").write_text("What did Ann say?")

    assert check_bundle(folder).problems == ("files: not those that a bundle has",)


def test_what_is_no_bundle_is_said_with_who_can_do_something_about_it(tmp_path):
    folder = bundle(tmp_path)
    broken, cut_off = tmp_path / "broken", tmp_path / "small.work"
    for path, name, text in ((broken, "manifest.json", "{}"), (cut_off, "state.json", "{}")):
        path.mkdir()
        (path / name).write_text(text)

    def said(path):
        (problem,) = check_bundle(path).problems
        return problem

    assert said(tmp_path / "none").startswith("no bundle: there is no such folder")
    assert said(cut_off) == "no bundle yet: the run was cut off; whoever began it goes on with its command"
    assert said(tmp_path).endswith(f"; below it lie 2, such as {min(broken.name, folder.name)}")
    assert said(broken).startswith("broken bundle: its manifest.json is not as a run writes it; get it anew")


def test_the_gold_is_read_again_where_the_data_is_at_hand(tmp_path, small_beam):
    folder = small_beam.bundle(tmp_path / "out")
    assert check_bundle(folder, data=small_beam.path).holds

    small_beam.turn_gold()

    report = check_bundle(folder, data=small_beam.path)
    assert "data: 1/probing_questions.json is another file" in report.problems
    assert any("has another in the data" in problem for problem in report.problems)


def test_no_bundle_of_the_repository_names_a_machine_a_person_or_a_key():
    """The closed alphabets keep out sentences; this looks for short names, in what is really shipped."""
    names = {getpass.getuser(), socket.gethostname(), Path.home().name} - {
        "",
        "root",
    }
    found = []
    for path in (ROOT / "artifacts").rglob("*"):
        if path.is_file() and "bench" not in path.parts:
            text = path.read_text()
            found += [f"{path.name}: {name}" for name in names if name in text]
            found += [
                f"{path.name}: a space"
                for line in text.splitlines()
                if path.suffix == ".jsonl" and " " in line and "gates" not in path.parts
            ]

    assert found == []
