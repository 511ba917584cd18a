"""An export that the disk cuts off says who has to act, and leaves no file open."""

from __future__ import annotations

import errno
import io
import os

import pytest

from contracts.errors import BadRequest, Unavailable
from contracts.grants import LOCAL_GRANT
from ledger import _export_form, log
from tests.ledger.log_drafts import append, draft


class Disk(io.RawIOBase):
    """A file that cannot be written."""

    def __init__(self, number):
        self._number = number

    def writable(self):
        return True

    def write(self, _data):
        raise OSError(self._number, os.strerror(self._number))


KINDS = {
    errno.ENOSPC: Unavailable,
    errno.EDQUOT: Unavailable,
    errno.EIO: Unavailable,
    errno.EFBIG: BadRequest,
}


@pytest.mark.parametrize("number", KINDS)
@pytest.mark.parametrize("buffered", [1, 1_048_576], ids=["at a row", "at the end of a file"])
async def test_a_disk_that_fails_is_no_fault_of_the_request(
    plane_db, tmp_path, monkeypatch, number, buffered
):
    await append(plane_db, draft("Ann lives in Lyon.", source_event_id="e1"))
    opened = []

    def create(_path):
        opened.append(io.BufferedWriter(Disk(number), buffered))
        return opened[-1]

    monkeypatch.setattr(_export_form, "_created", create)

    with pytest.raises(KINDS[number], match=os.strerror(number)):
        await log.export_tenant(plane_db, "acme", tmp_path / "out", grant=LOCAL_GRANT)
    assert [file.raw.closed for file in opened] == [True]


def test_what_is_no_regular_file_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "manifest.json")

    with pytest.raises(BadRequest, match="not a regular file"):
        _export_form.Manifest.read(tmp_path)
