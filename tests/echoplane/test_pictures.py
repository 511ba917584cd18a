"""Pictures of histories: those in the pages are what the records beside them come to."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from contracts.erasures import ErasureRequest
from contracts.grants import LOCAL_GRANT
from contracts.limits import PICTURE_CELLS_MAX
from contracts.read_wire import HistoryAnswer, HistoryCell
from contracts.views import ViewRequest
from echoplane import _reads
from echoplane._emit import read_lines
from echoplane._requests import read_known
from echoplane._svg import picture
from ledger import log
from ledger.erase import erase
from ledger.write import fold
from projection import RuleProjector

PICTURES = Path(__file__).parents[2] / "docs" / "pictures"
NEWEST = ViewRequest(valid_at=None, known_at=None, generation=None, min_commit=None)
WHOLE = _reads.HistoryWanted(
    entity="Ann", relation=None, valid_from=None, valid_to=None,
    known_from=read_known(None, field="known_from"), known_to=read_known(None, field="known_to"),
    timeline=False, at=None,
)  # fmt: skip


async def drawn(plane, name: str) -> str:
    await plane.make_tenant("acme")
    receipts = {}
    for line in read_lines((PICTURES / f"{name}.jsonl").read_bytes()):
        receipt = await log.append(plane.database, "acme", [line.draft], grant=LOCAL_GRANT)
        receipts[line.draft.source_event_id] = receipt.event_ids[0]
    await fold(plane.database, "acme", RuleProjector(), events_max=100)
    if "forget" in receipts:
        request = ErasureRequest(subject=None, event_ids=(receipts["forget"],))
        await erase(plane.database, "acme", RuleProjector(), request, grant=LOCAL_GRANT)
    return picture(await _reads.history(plane, "acme", NEWEST, WHOLE))


@pytest.mark.parametrize("path", sorted(PICTURES.glob("*.jsonl")), ids=lambda path: path.stem)
async def test_a_picture_in_the_pages_is_what_its_record_comes_to(plane, path):
    found = await drawn(plane, path.stem)

    assert found == path.with_suffix(".svg").read_text(encoding="utf-8")


def history_of(*cells: HistoryCell, entity: str = "Ann") -> HistoryAnswer:
    return HistoryAnswer(
        entity=entity, relation=None, shape="rectangles", epoch=1, cut=9, truncated=False, cells=list(cells),
        claims=[], unplaced=[], withdrawn=[], withdrawn_whole=True,
    )  # fmt: skip


def cell(**fields) -> HistoryCell:
    form = {
        "valid_from": "2026-01-01T00:00:00Z", "valid_to": None, "known_from": 1, "known_to": None,
        "known_from_at": "2026-01-01T00:00:00Z", "known_to_at": None, "relation": "home", "part": "",
        "state": "value", "values": ["Lyon"], "claims": [],
    }  # fmt: skip
    return HistoryCell(**(form | fields))


def test_no_value_breaks_out_of_the_picture():
    hostile = '</text><script>alert(1)</script>\u202e\x07"&'

    svg = picture(history_of(cell(values=[hostile], relation=hostile), entity=hostile))

    root = ET.fromstring(svg)  # noqa: S314 - our own
    assert not [node for node in root.iter() if node.tag.endswith("script")]
    assert "\u202e" not in svg
    assert "\x07" not in svg


def test_a_rectangle_is_as_wide_as_its_time_and_as_high_as_its_commits():
    svg = picture(
        history_of(
            cell(valid_to="2026-01-05T00:00:00Z", known_to=2),
            cell(valid_from="2026-01-05T00:00:00Z", values=["Oslo"]),
        )
    )
    root = ET.fromstring(svg)  # noqa: S314 - our own
    shapes = [node.attrib for node in root.iter() if node.tag.endswith("rect") and "stroke" in node.attrib]

    first, second = shapes
    assert int(first["x"]) + int(first["width"]) == int(second["x"])
    assert int(second["height"]) == 2 * int(first["height"])


def test_a_picture_of_too_much_says_that_there_is_more():
    cells = [cell(part=str(number)) for number in range(PICTURE_CELLS_MAX + 1)]

    assert "and more" in picture(history_of(*cells))
    assert "and more" not in picture(history_of(*cells[:-1]))


def test_a_history_of_nothing_is_a_picture_too():
    assert "nothing was ever known" in picture(history_of())
