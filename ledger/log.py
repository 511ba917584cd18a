"""
The event log: append, read and verify; tenants, tokens, and the trails of what was asked.

Promises: an accepted append is durable, is never edited, and becomes visible in commit order; what
is read is checked against its hash. Nothing here decides what is current.
Does not promise: that what an event says is true.
"""

from __future__ import annotations

from ledger._append import append, append_command
from ledger._claims import read_claims
from ledger._database import Database, open_database
from ledger._keys import EventKey, TenantKeys
from ledger._read import (
    Head,
    LoggedEvent,
    event_keys,
    head,
    pending,
    read_event,
    read_events,
    read_events_by_id,
    serving,
)
from ledger._standing import Standing, standings
from ledger._tenants import create_tenant, list_tenants, tenant_exists, tenant_keys
from ledger._wake import WAKE_CHANNEL

__all__ = [
    "WAKE_CHANNEL",
    "Database",
    "EventKey",
    "Head",
    "LoggedEvent",
    "Standing",
    "TenantKeys",
    "append",
    "append_command",
    "create_tenant",
    "event_keys",
    "head",
    "list_tenants",
    "open_database",
    "pending",
    "read_claims",
    "read_event",
    "read_events",
    "read_events_by_id",
    "serving",
    "standings",
    "tenant_exists",
    "tenant_keys",
]
