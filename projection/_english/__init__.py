"""English. The door is `EnglishReader`; word lists, frames and guards are data in the modules beside it."""

from projection._english._reader import EnglishReader

__all__ = ["EnglishReader"]
