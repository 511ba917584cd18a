"""What the log and the projection plane need beside the ledger; each topic has a script of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_SCRIPTS: Final[tuple[str, ...]] = (
    "0003_discovery.sql",
    "0003_log.sql",
    "0003_projection.sql",
    "0003_tenants.sql",
    "0003_trails.sql",
)


def upgrade() -> None:
    """Add to the ledger's schema; rows that are there stay as they are."""
    for name in _SCRIPTS:
        script = Path(__file__).with_name(name).read_text(encoding="utf-8")
        # No parameters: the driver would read the percent signs of a function body as placeholders.
        op.get_bind().execution_options(no_parameters=True).exec_driver_sql(script)


def downgrade() -> None:
    """Refuse: what was decided under the new schema is unknown to the old one."""
    raise NotImplementedError("there is no way back from the projection plane")
