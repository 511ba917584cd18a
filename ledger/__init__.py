"""
The ledger: what happened, what was claimed, and what is current.

Four doors, one module each: `log` (append, read and verify events), `write` (fold claims into
cells), `resolve` (decide), `closure` (collect the evidence of a decision). This file
imports nothing, so that a ban on `ledger.resolve` means something.

Promises: an accepted append is durable, is never edited, and becomes visible in commit order;
the fold is a deterministic function of the log; nothing outside `resolve` decides what is current.
Does not promise: that what an event says is true.
"""
