"""
The event log: append, read and verify; tenants, tokens, and the trails of what was asked.

Promises: an accepted append is durable, is never edited, and becomes visible in commit order; what
is read is checked against its hash. Nothing here decides what is current.
Does not promise: that what an event says is true.
"""

from __future__ import annotations

from ledger._append import append, append_command
from ledger._aside import aside
from ledger._backfill import backfill, stating
from ledger._border import keeps_order
from ledger._claims import read_claims
from ledger._commits import (
    Consistency,
    Inclusion,
    LoggedCommit,
    commits_up_to,
    read_checkpoint,
    read_commits,
    read_consistency,
    read_inclusion,
)
from ledger._database import Database, open_database
from ledger._ending import delete_tenant
from ledger._epochs import Epoch, EpochState, check_not_dropped, list_epochs
from ledger._erasures import erased_on
from ledger._export import export_tenant
from ledger._export_form import Manifest
from ledger._exported import (
    ExportedHead,
    ExportReport,
    check_consistency,
    check_export,
    check_inclusion,
    commit_form,
    commit_line,
    commit_of,
    open_note,
)
from ledger._follow import FollowedCommit, follow, following, read_commit, read_correlated, read_stream
from ledger._keys import EventKey, TenantKeys
from ledger._notes import Checkpoint, PublicKey, SigningKey
from ledger._problems import Problem, Problems
from ledger._read import (
    Head,
    LoggedEvent,
    event_keys,
    folded_to,
    head,
    last_erasure,
    pending,
    read_event,
    read_events,
    read_events_by_id,
    serving,
)
from ledger._recalled import TrailHeader, list_trails, read_context, read_trail
from ledger._restore import restore_tenant
from ledger._standing import Connections, Standing, connections, standings
from ledger._tenancy import (
    RETENTION_ACTOR,
    Decided,
    TenantUse,
    check_operator,
    decide,
    overdue,
    retaining,
    show_tenant,
)
from ledger._tenants import (
    TenantRecord,
    TenantState,
    create_tenant,
    half_deleted,
    list_tenants,
    read_tenants,
    tenant_exists,
    tenant_keys,
)
from ledger._tokens import TokenRecord, create_token, find_grant, list_tokens, revoke_token
from ledger._trails import (
    ErasedContext,
    ErasedTrail,
    RecalledContext,
    RecalledTrail,
    StoredContext,
    new_trail_id,
    store_recall,
)
from ledger._turns import Turns
from ledger._verify import VerifyReport, verify
from ledger._wake import WAKE_CHANNEL, Wakes, listening

__all__ = [
    "RETENTION_ACTOR",
    "WAKE_CHANNEL",
    "Checkpoint",
    "Connections",
    "Consistency",
    "Database",
    "Decided",
    "Epoch",
    "EpochState",
    "ErasedContext",
    "ErasedTrail",
    "EventKey",
    "ExportReport",
    "ExportedHead",
    "FollowedCommit",
    "Head",
    "Inclusion",
    "LoggedCommit",
    "LoggedEvent",
    "Manifest",
    "Problem",
    "Problems",
    "PublicKey",
    "RecalledContext",
    "RecalledTrail",
    "SigningKey",
    "Standing",
    "StoredContext",
    "TenantKeys",
    "TenantRecord",
    "TenantState",
    "TenantUse",
    "TokenRecord",
    "TrailHeader",
    "Turns",
    "VerifyReport",
    "Wakes",
    "append",
    "append_command",
    "aside",
    "backfill",
    "check_consistency",
    "check_export",
    "check_inclusion",
    "check_not_dropped",
    "check_operator",
    "commit_form",
    "commit_line",
    "commit_of",
    "commits_up_to",
    "connections",
    "create_tenant",
    "create_token",
    "decide",
    "delete_tenant",
    "erased_on",
    "event_keys",
    "export_tenant",
    "find_grant",
    "folded_to",
    "follow",
    "following",
    "half_deleted",
    "head",
    "keeps_order",
    "last_erasure",
    "list_epochs",
    "list_tenants",
    "list_tokens",
    "list_trails",
    "listening",
    "new_trail_id",
    "open_database",
    "open_note",
    "overdue",
    "pending",
    "read_checkpoint",
    "read_claims",
    "read_commit",
    "read_commits",
    "read_consistency",
    "read_context",
    "read_correlated",
    "read_event",
    "read_events",
    "read_events_by_id",
    "read_inclusion",
    "read_stream",
    "read_tenants",
    "read_trail",
    "restore_tenant",
    "retaining",
    "revoke_token",
    "serving",
    "show_tenant",
    "standings",
    "stating",
    "store_recall",
    "tenant_exists",
    "tenant_keys",
    "verify",
]
