"""The public sets by name: how each is read, and how its gold is read apart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from audit._beam import read_beam, read_beam_gold
from audit._histories import Gold, History
from audit._locomo import read_locomo, read_locomo_gold
from audit._longmemeval import read_longmemeval, read_longmemeval_gold


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSet:
    """A set's two readers, numbered alike: what is public, and what is gold."""

    name: str
    read: Callable[[Path], list[History]]
    read_gold: Callable[[Path], list[tuple[Gold, ...]]]


DATA_SETS: Final = {
    one.name: one
    for one in (
        DataSet(name="locomo", read=read_locomo, read_gold=read_locomo_gold),
        DataSet(name="beam", read=read_beam, read_gold=read_beam_gold),
        DataSet(name="longmemeval", read=read_longmemeval, read_gold=read_longmemeval_gold),
    )
}
