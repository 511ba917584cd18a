"""
The routes by name: each can be switched off, to see what it is worth.

A route that is off computes nothing, adds nothing and is reported as off.
"""

from __future__ import annotations

from typing import Final

ROUTES: Final = (
    "lexical", "window", "dense", "state", "actor", "time", "first_hand", "stated",
    "surface", "graph", "parts", "session", "neighbours", "reply",
    "second_hop",
)  # fmt: skip
