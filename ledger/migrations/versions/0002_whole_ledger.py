"""What the whole ledger needs beside the first schema; each topic has a script of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_SCRIPTS: Final[tuple[str, ...]] = (
    "0002_epochs.sql",
    "0002_fold.sql",
    "0002_lookup.sql",
    "0002_vectors.sql",
    "0002_views.sql",
    "0002_erasure.sql",
    "0002_statistics.sql",
)


def upgrade() -> None:
    """
    Add to the first schema. The log stays as it is.

    What was folded of it is emptied, and every epoch that serves folds its log again from the start. A
    retired one is not folded again: it says nothing from then on.
    """
    for name in _SCRIPTS:
        script = Path(__file__).with_name(name).read_text(encoding="utf-8")
        # No parameters: the driver would read the percent signs of a function body as placeholders.
        op.get_bind().execution_options(no_parameters=True).exec_driver_sql(script)


def downgrade() -> None:
    """Refuse: what was erased or folded under the new schema has no form under the old one."""
    raise NotImplementedError("there is no way back from the whole ledger")
