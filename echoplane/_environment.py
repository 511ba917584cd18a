"""Where a run takes place, as far as its numbers may depend on it; nothing that names a machine."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Final

from audit import as_word
from contracts.artifacts import Environment

_LIBRARIES: Final = ("bm25s", "numpy", "onnxruntime", "pgvector", "psycopg", "snowballstemmer", "tokenizers")


def environment() -> Environment:
    """Return it: versions and kinds alone."""
    found = {}
    for name in _LIBRARIES:
        try:
            found[name] = as_word(version(name))
        except PackageNotFoundError:
            continue
    return Environment(
        python=platform.python_version(),
        system=as_word(platform.system()),
        machine=as_word(platform.machine()),
        cpus=os.cpu_count() or 1,
        libraries=found,
    )
