"""
The declared schema. Migrations must arrive at exactly this (a test compares them).

Every table carries `tenant` in its primary, unique and foreign keys and stands under FORCE ROW
LEVEL SECURITY with the policy `tenant = current_setting('echoplane.tenant', true)`. Open bounds
are NULL ranges' open ends, never `infinity`.
"""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa
from pgvector.sqlalchemy import HALFVEC
from sqlalchemy.dialects import postgresql as pg

from ledger._metadata import metadata
from ledger._metadata import tenant_column as _tenant
from ledger._tables_erasure import erased, tombstone, tombstone_reach, veiled_name
from ledger._tables_log import commit, event, event_key, head, outbox
from ledger._tables_recall import context, context_key, pinned_view, trail, trail_head, trail_key
from ledger._tables_tenants import TABLES_ACROSS_TENANTS, deleted_tenant, tenant_policy

__all__ = [
    "TABLES_ACROSS_TENANTS",
    "cell",
    "claim",
    "commit",
    "context",
    "context_key",
    "dead_letter",
    "deleted_tenant",
    "epoch",
    "erased",
    "event",
    "event_key",
    "head",
    "line",
    "metadata",
    "outbox",
    "pinned_view",
    "reach",
    "relation",
    "tenant",
    "tenant_policy",
    "token",
    "tombstone",
    "tombstone_reach",
    "trail",
    "trail_head",
    "trail_key",
    "unit_vector",
    "veiled_name",
]

# --- tenancy and keys ---------------------------------------------------------------------------

tenant = sa.Table(
    "tenant",
    metadata,
    _tenant(),
    sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
    # The tenant's key-encryption and digest keys, wrapped by the master key, which is in no table.
    sa.Column("wrapped_keys", sa.LargeBinary, nullable=False),
    sa.Column("created_by", sa.Text, nullable=False),
    sa.PrimaryKeyConstraint("tenant"),
    # The setting `echoplane.tenant` reads as '' once it was set and reset: no tenant may be called that.
    sa.CheckConstraint("tenant ~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$'", name="tenant_name"),
)

token = sa.Table(
    "token",
    metadata,
    _tenant(),
    sa.Column("token_digest", sa.LargeBinary, nullable=False),
    sa.Column("label", sa.Text, nullable=False),
    sa.Column("rights", pg.ARRAY(sa.Text), nullable=False),
    sa.Column("actors", pg.ARRAY(sa.Text), nullable=False),
    sa.Column("classes", pg.ARRAY(sa.Text), nullable=False),
    sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
    sa.Column("revoked_at", sa.DateTime(timezone=True)),
    sa.PrimaryKeyConstraint("tenant", "token_digest"),
    sa.ForeignKeyConstraint(["tenant"], ["tenant.tenant"], name="token_of_tenant"),
)

epoch = sa.Table(
    "epoch",
    metadata,
    _tenant(),
    sa.Column("epoch", sa.Integer, nullable=False),
    # `commit` is the cursor: every event up to it is folded. The fold takes this row under lock.
    sa.Column("commit", sa.BigInteger, nullable=False),
    sa.Column("position", sa.BigInteger, nullable=False),
    sa.Column("projector_version", sa.Text, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.PrimaryKeyConstraint("tenant", "epoch"),
    sa.ForeignKeyConstraint(["tenant"], ["tenant.tenant"], name="epoch_of_tenant"),
    sa.CheckConstraint("state IN ('serving', 'building', 'retired', 'dropped')", name="epoch_state"),
    sa.Index("epoch_serving_once", "tenant", unique=True, postgresql_where=sa.text("state = 'serving'")),
    sa.Index("epoch_building_once", "tenant", unique=True, postgresql_where=sa.text("state = 'building'")),
)

dead_letter = sa.Table(
    "dead_letter",
    metadata,
    _tenant(),
    sa.Column("epoch", sa.Integer, nullable=False),
    sa.Column("position", sa.BigInteger, nullable=False),
    sa.Column("error", sa.Text, nullable=False),
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.Column("first_at", sa.DateTime(timezone=True), nullable=False),
    sa.Column("last_at", sa.DateTime(timezone=True), nullable=False),
    sa.PrimaryKeyConstraint("tenant", "epoch", "position"),
    sa.ForeignKeyConstraint(
        ["tenant", "epoch"], ["epoch.tenant", "epoch.epoch"], name="dead_letter_of_epoch"
    ),
)

relation = sa.Table(
    "relation",
    metadata,
    _tenant(),
    sa.Column("epoch", sa.Integer, nullable=False),
    sa.Column("relation", sa.Text, nullable=False),
    sa.Column("commit", sa.BigInteger, nullable=False),
    # Canonical JSON of the contract; `seal` covers the row, keyed with the tenant's digest key.
    sa.Column("contract", sa.LargeBinary, nullable=False),
    sa.Column("seal", sa.LargeBinary, nullable=False),
    sa.PrimaryKeyConstraint("tenant", "epoch", "relation"),
    sa.ForeignKeyConstraint(["tenant", "epoch"], ["epoch.tenant", "epoch.epoch"], name="relation_of_epoch"),
)

_KEY_COLUMNS: Final = ("tenant", "epoch", "entity", "relation")

claim = sa.Table(
    "claim",
    metadata,
    _tenant(),
    sa.Column("epoch", sa.Integer, nullable=False),
    sa.Column("claim_id", sa.LargeBinary, nullable=False),
    sa.Column("position", sa.BigInteger, nullable=False),
    sa.Column("ordinal", sa.Integer, nullable=False),
    sa.Column("commit", sa.BigInteger, nullable=False),
    sa.Column("event_id", sa.Text, nullable=False),
    sa.Column("entity", sa.Text, nullable=False),
    sa.Column("relation", sa.Text, nullable=False),
    sa.Column("stance", sa.Text, nullable=False),
    # Canonical JSON of everything else (value, validity, source, targets, inputs, spans …).
    sa.Column("body", sa.LargeBinary, nullable=False),
    # Keyed digest over every other column but the last: a changed byte anywhere in them is found at read.
    sa.Column("seal", sa.LargeBinary, nullable=False),
    # Where a state begins that is plainly said, in microseconds: the body says it too.
    sa.Column("starts", sa.BigInteger),
    # From when on and until when one with a coarse start may have begun, likewise.
    sa.Column("unsure_from", sa.BigInteger),
    sa.Column("unsure_to", sa.BigInteger),
    sa.PrimaryKeyConstraint("tenant", "epoch", "claim_id"),
    sa.UniqueConstraint("tenant", "epoch", "position", "ordinal", name="claim_position_once"),
    # That its epoch and its event are there is asked once a statement, by a trigger.
    sa.Index("claim_of_key", *_KEY_COLUMNS, "position", "ordinal"),
    # By it a late state finds the next one of its key.
    sa.Index(
        "claim_state",
        *_KEY_COLUMNS,
        "starts",
        "position",
        "ordinal",
        postgresql_where=sa.text("starts IS NOT NULL"),
    ),
    # By it those are found that may hold already.
    sa.Index(
        "claim_unsure",
        *_KEY_COLUMNS,
        "unsure_to",
        "unsure_from",
        postgresql_where=sa.text("unsure_to IS NOT NULL"),
    ),
    # Who is one with whom: few claims, read whole.
    sa.Index(
        "claim_identity",
        "tenant",
        "epoch",
        "position",
        postgresql_where=sa.text("relation IN ('same_as', 'not_same_as')"),
    ),
    # What acts on others is needed however old it is.
    sa.Index(
        "claim_acting",
        *_KEY_COLUMNS,
        "position",
        "ordinal",
        postgresql_where=sa.text("stance IN ('correct', 'retract', 'settle', 'dispute')"),
    ),
)

# Keys that a claim bears on beside its own: those of its targets, of its winner, of its inputs.
# Keys joined by such claims are loaded and decided together.
reach = sa.Table(
    "reach",
    metadata,
    _tenant(),
    sa.Column("epoch", sa.Integer, nullable=False),
    sa.Column("entity", sa.Text, nullable=False),
    sa.Column("relation", sa.Text, nullable=False),
    sa.Column("claim_id", sa.LargeBinary, nullable=False),
    # The claim's own position, and whether it acts on others: the newest of those are looked up.
    sa.Column("position", sa.BigInteger, nullable=False),
    sa.Column("acts", sa.Boolean, nullable=False),
    # Whether it is a state with a coarse start that names no key of its own.
    sa.Column("unsure", sa.Boolean, nullable=False),
    sa.PrimaryKeyConstraint("tenant", "epoch", "entity", "relation", "claim_id"),
    sa.ForeignKeyConstraint(
        ["tenant", "epoch", "claim_id"],
        ["claim.tenant", "claim.epoch", "claim.claim_id"],
        name="reach_of_claim",
    ),
    sa.Index("reach_by_claim", "tenant", "epoch", "claim_id"),
    sa.Index(
        "reach_acting",
        *_KEY_COLUMNS,
        "position",
        postgresql_where=sa.text("acts"),
    ),
    sa.Index("reach_unsure", *_KEY_COLUMNS, "claim_id", postgresql_where=sa.text("unsure")),
)

line = sa.Table(
    "line",
    metadata,
    _tenant(),
    sa.Column("epoch", sa.Integer, nullable=False),
    sa.Column("line", sa.BigInteger, sa.Identity(always=True), nullable=False),
    sa.Column("entity", sa.Text, nullable=False),
    sa.Column("relation", sa.Text, nullable=False),
    # Where a key splits: the normalized value (many) or the occurrence's identity; else ''.
    sa.Column("part", sa.Text, nullable=False),
    # By what an appended state is decided without its line's history; NULL where it cannot be. A
    # help of the fold, which is made again from claims.
    sa.Column("tail", sa.LargeBinary),
    sa.PrimaryKeyConstraint("tenant", "line"),
    sa.UniqueConstraint("tenant", "epoch", "entity", "relation", "part", name="line_once"),
    # By it the keys of a relation are read, those that came first before the others.
    sa.Index("line_of_relation", "tenant", "epoch", "relation", "line"),
    sa.ForeignKeyConstraint(["tenant", "epoch"], ["epoch.tenant", "epoch.epoch"], name="line_of_epoch"),
)

cell = sa.Table(
    "cell",
    metadata,
    _tenant(),
    sa.Column("cell", sa.BigInteger, sa.Identity(always=True), nullable=False),
    sa.Column("line", sa.BigInteger, nullable=False),
    sa.Column("valid", pg.TSTZRANGE, nullable=False),
    # Commits from which to which it was known; the upper bound is open while it is.
    sa.Column("known", pg.INT8RANGE, nullable=False),
    # value | conflict | ended | withdrawn | undetermined (and tombstone, with erasure).
    sa.Column("state", sa.Text, nullable=False),
    # Claims that carry it; for a conflict, the rivals.
    sa.Column("claims", pg.ARRAY(sa.LargeBinary), nullable=False),
    # Where it begins in valid time, and at which commit it stands: by these an instant at a cut is
    # found (0002_lookup.sql says how).
    sa.Column(
        "starts",
        sa.DateTime(timezone=True),
        sa.Computed("coalesce(lower(valid), '-infinity'::timestamptz)", persisted=True),
        nullable=False,
    ),
    sa.Column(
        "node",
        sa.BigInteger,
        sa.Computed(
            "CASE WHEN upper_inf(known) THEN 0 ELSE (upper(known) - 1) & ((-1)::bigint << (length(ltrim("
            "((lower(known) - 1) # (upper(known) - 1))::bit(64)::text, '0')) - 1)) END",
            persisted=True,
        ),
        nullable=False,
    ),
    # Keyed digest over the cell and its line's key: a changed cell is found at read.
    sa.Column("seal", sa.LargeBinary, nullable=False),
    sa.PrimaryKeyConstraint("tenant", "cell"),
    # That its line is there is asked once a statement, by a trigger.
    sa.CheckConstraint("NOT isempty(valid) AND NOT isempty(known)", name="cell_not_empty"),
    sa.CheckConstraint(
        "coalesce(isfinite(lower(valid)), true) AND coalesce(isfinite(upper(valid)), true)",
        name="cell_bounds_are_finite_or_open",
    ),
    sa.CheckConstraint("lower(known) IS NOT NULL", name="cell_known_from_a_commit"),
    # Two rectangles that overlap were once both open: so this proves the whole plane.
    pg.ExcludeConstraint(
        ("line", "="),
        ("valid", "&&"),
        ("tenant", "="),
        where=sa.text("upper_inf(known)"),
        using="gist",
        name="cell_open_disjoint",
    ),
    sa.Index("cell_point", "tenant", "line", "node", "starts", unique=True),
)

# --- discovery's own index ----------------------------------------------------------------------

unit_vector = sa.Table(
    "unit_vector",
    metadata,
    _tenant(),
    sa.Column("unit_id", sa.Text, nullable=False),
    sa.Column("model_digest", sa.Text, nullable=False),
    sa.Column("position", sa.BigInteger, nullable=False),
    # Keyed digest of the unit's text: the same text is embedded once.
    sa.Column("text_digest", sa.LargeBinary, nullable=False),
    # As many numbers as the model gives.
    sa.Column("embedding", HALFVEC, nullable=False),
    sa.PrimaryKeyConstraint("tenant", "unit_id", "model_digest"),
    sa.ForeignKeyConstraint(["tenant"], ["tenant.tenant"], name="unit_vector_of_tenant"),
    # Erased with the key, and never stored without it, whoever comes first.
    sa.ForeignKeyConstraint(
        ["tenant", "unit_id"],
        ["event_key.tenant", "event_key.event_id"],
        name="unit_vector_of_key",
        ondelete="CASCADE",
    ),
    sa.Index("unit_vector_text", "tenant", "model_digest", "text_digest"),
)
