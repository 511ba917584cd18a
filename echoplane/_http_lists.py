"""What every list takes in its query string: where a page begins, and how long it is."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query
from pydantic import BaseModel, ConfigDict

from contracts.limits import LIST_ROWS_MAX
from contracts.names import Name


class _Page(BaseModel):
    model_config = ConfigDict(extra="forbid")

    limit: Annotated[int, Query(ge=1, le=LIST_ROWS_MAX)] = LIST_ROWS_MAX


class NamesPage(_Page):
    """A page of what is listed by name: those after one."""

    after: Name | None = None


class NumbersPage(_Page):
    """A page of what is listed by number: those after one."""

    after: Annotated[int, Query(ge=0, le=2**53 - 1)] = 0


LIST_PARAMETERS: tuple[type[BaseModel], ...] = (NamesPage, NumbersPage)
"""All that can be said in a query string here."""
