"""A search for words, in whatever form they are stored, and for keys in every file of a data folder."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.acceptance.planes import RunningPlane

PERSON: Final = "Vexolumbra"
ALIAS: Final = "Vexolumbrick"
STEMS: Final = ("vexolumb", "Schmöqueln", "8841-4417")
"""What is looked for in every form; each word of the person's holds one of them."""
WORDS: Final = (
    *(PERSON, ALIAS, "Vexolumbia", "vexolumb_grade", "vexolumb-strand", "vexolumb-src", "vexolumb-idem"),
    *("vexolumbwick", "vexolumbque", "vexolumb-corr", "vexolumb-occ", "vexolumbmary", "vexolumbax"),
    *("Schmöqueln", "8841-4417"),
)


def forms_of(word: str) -> Iterator[bytes]:
    """Yield the bytes a word may be stored as; letters are compared in lower case."""
    for text in {word, word.lower(), word.capitalize()}:
        yield text.encode()
        yield text.encode("utf-16-le")
        yield text.encode("utf-16-be")
        yield json.dumps(text)[1:-1].encode()
        yield text.encode().hex().encode()
        for before in range(3):
            # The middle of its base64, wherever in a longer text it began.
            yield base64.b64encode(b"\0" * before + text.encode())[4:-4]


class Search:
    """Looks for words and keys in every file of a data folder."""

    def __init__(self, secrets: dict[str, bytes]) -> None:
        self._forms = {form.lower(): stem for stem in STEMS for form in forms_of(stem)}
        self._secrets = {name: secret.rstrip(b"\0") for name, secret in secrets.items()}

    def files(self, running: RunningPlane) -> dict[str, set[str]]:
        """Return the files that hold any of it, with what they hold."""
        found: dict[str, set[str]] = {}
        for root in {running.data, *running.folder.outside().values()}:
            for path in root.rglob("*"):
                if path.is_symlink() or not path.is_file():
                    continue
                if hits := set(self.in_bytes(read(path))):
                    found[str(path.relative_to(root))] = hits
        return found

    def in_bytes(self, data: bytes) -> Iterator[str]:
        # Files of the write-ahead log are mostly zeros at their end.
        data = data.rstrip(b"\0")
        folded = data.lower()
        stems = {stem for form, stem in self._forms.items() if form in folded}
        yield from stems
        if stems:
            yield from (word for word in WORDS if word.encode().lower() in folded)
        yield from (name for name, secret in self._secrets.items() if secret in data)


def read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        # A file of the server that ended meanwhile; it writes elsewhere now.
        return b""
