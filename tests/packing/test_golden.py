import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import rfc8785

from tests.packing.goldens import BEFORE, TODAY, stored, written

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(("case", "packer"), [*TODAY, *BEFORE])
def test_a_golden_context_is_packed_to_the_same_bytes_by_the_packer_of_its_day(case, packer):
    assert written(case, packer) == stored(case, packer)


@pytest.mark.parametrize(("case", "packer"), [*TODAY, *BEFORE])
def test_the_hashes_of_a_golden_context_can_be_recomputed_without_our_code(case, packer):
    golden = stored(case, packer)
    form = json.loads(golden["form"])

    assert hashlib.sha256(golden["form"].encode()).hexdigest() == golden["context_hash"]
    assert hashlib.sha256(rfc8785.dumps(form["content"])).hexdigest() == golden["content_hash"]
    assert rfc8785.dumps(form) == golden["form"].encode()


@pytest.mark.parametrize(
    "environment",
    [
        {"LC_ALL": "tr_TR.UTF-8", "TZ": "Pacific/Kiritimati", "PYTHONHASHSEED": "1"},
        {"LC_ALL": "C", "TZ": "America/St_Johns", "PYTHONHASHSEED": "4294967295", "PYTHONUTF8": "0"},
    ],
    ids=["turkish", "posix"],
)
def test_golden_contexts_are_the_same_bytes_under_another_locale_zone_and_hash_seed(environment):
    done = subprocess.run(
        [sys.executable, "-m", "tests.packing.goldens"],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], **environment},  # noqa: TID251 -- a child needs the search path
        capture_output=True,
        check=True,
        timeout=60,
    )

    assert json.loads(done.stdout) == [stored(*one) for one in (*TODAY, *BEFORE)]
