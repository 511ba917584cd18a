"""Every bound of the plane, in one place, checked against each other. `docs/limits.md` lists them."""

from __future__ import annotations

from typing import Final

# --- one event -------------------------------------------------------------------------------
NAME_CHARACTERS_MAX: Final = 512
"""Characters in an id, entity, relation, stream or key."""
NAME_BYTES_MAX: Final = 1_024
"""Bytes of the same as UTF-8: entity and relation together must fit in one index row."""
TEXT_CHARACTERS_MAX: Final = 200_000
"""Characters in the text of one event."""
VALUE_BYTES_MAX: Final = 16_384
"""Bytes of one claim's value as canonical JSON."""
VALUE_DEPTH_MAX: Final = 16
"""Levels of lists and objects in one claim's value."""
SUBJECTS_MAX: Final = 64
CLAIMS_MAX: Final = 256
"""Structured claims in one event."""
TARGETS_MAX: Final = 256
"""Targets or inputs of one event or claim."""
EVENT_REFERENCES_MAX: Final = 4_096
"""Targets, inputs and winners of the claims of one event, with each claim those that it shares."""
EVENT_BYTES_MAX: Final = 1_048_576
"""Bytes of one event as canonical JSON, targets that claims share with each of them."""

# --- one append ------------------------------------------------------------------------------
APPEND_EVENTS_MAX: Final = 1_000
"""Events in one atomic append."""
STREAM_EVENTS_MAX: Final = 2**53 - 1
"""Events of one stream: what every JSON reader can count."""
APPEND_BYTES_MAX: Final = 16 * EVENT_BYTES_MAX
APPEND_REFERENCES_MAX: Final = 16 * EVENT_REFERENCES_MAX
APPEND_CHECKS_MAX: Final = 1_048_576
"""Values, lists and objects times schemas, of all values of one append that have a schema."""
NAMED_CLAIMS_MAX: Final = 10_000
"""Targets and claims that are looked at to tell what values of one append are about."""
APPENDS_TOGETHER_EVENTS_MAX: Final = 256
"""Events of all appends that share a transaction; a larger append has one to itself."""
APPENDS_WAITING_MAX: Final = 512
"""Appends of one tenant that wait for their transaction, in one process."""
APPENDS_WAITING_BYTES_MAX: Final = 4 * APPEND_BYTES_MAX
"""Encrypted bytes of all appends that wait for theirs, in one process; of one tenant at most half."""

RECALLS_AT_ONCE_MAX: Final = 64
"""Recalls of one tenant that are stored in one transaction; as many wait as appends may."""
SUPPOSED_TRAILS_MAX: Final = 50
"""Answers that are asked again on one page of what a retraction would change: appends wait meanwhile."""

CONTRACT_NAMES_MAX: Final = 64
"""Places in a relation contract's authority, names in one place, and rules of supersession."""
CONTRACTS_MAX: Final = 1_000
"""Relations that a tenant may have registered contracts of."""
CONTRACT_TRIES_MAX: Final = 8
"""Times an append is checked again because contracts were registered meanwhile."""

# --- typed values ----------------------------------------------------------------------------
NUMBER_CHARACTERS_MAX: Final = 128
"""Characters of a number that is said as text, with its unit."""
NUMBER_EXPONENT_MAX: Final = 308
"""Powers of ten that a number has at most, above and below one: what every JSON reader can hold."""
UNIT_CHARACTERS_MAX: Final = 64
"""Characters of a unit."""
SCHEMA_BYTES_MAX: Final = 4_096
"""Bytes of a contract's JSON Schema as canonical JSON."""
SCHEMA_DEPTH_MAX: Final = 16
"""Levels of lists and objects in it."""
SCHEMA_PARTS_MAX: Final = 256
"""Schemas in it, each counted wherever a reference puts it."""
JSON_PARTS_MAX: Final = 512
"""Values, lists and objects in one value of type json."""
JSON_CHECKS_MAX: Final = 16_384
"""Values, lists and objects in it times schemas in its contract's."""

# --- one erasure -----------------------------------------------------------------------------
ERASED_EVENTS_MAX: Final = 10_000
"""Events that one erasure takes."""
ERASURES_AT_ONCE: Final = 2
"""Erasures that one process carries out at once, each of another tenant; others wait for their turn."""
ERASURE_WAIT_SECONDS: Final = 60
"""How long an erasure waits for its turn."""
ERASURE_SECONDS_MAX: Final = 600
"""How long an erasure may work out what is left, and fold what was appended, before its session is ended."""

# --- tenants ---------------------------------------------------------------------------------
QUOTA_MAX: Final = 2**53 - 1
"""Events, or bytes, that a quota can be set to: what every JSON reader can count."""
RATE_EVENTS_MAX: Final = 1_000_000_000
"""Events a minute that a tenant's rate can be set to."""
RETENTION_DAYS_MAX: Final = 36_500
RETENTION_EVENTS_MAX: Final = 1_000
"""Events that one erasure of a retention policy takes."""
RETENTION_SECONDS: Final = 3_600
"""Between two looks for what a retention policy erases."""
LIST_ROWS_MAX: Final = 1_000
"""Tenants, contracts, views or epochs on one page of a list."""
TENANT_ROWS_MAX: Final = 5_000
"""Rows of a deleted tenant that are deleted in one transaction."""
RESTORE_ROWS_MAX: Final = 1_000
"""Rows of an export that are written in one statement."""
RESTORE_LINE_BYTES_MAX: Final = 67_108_864
"""Bytes of one line of an export: a row, its bytes as digits."""

PICTURE_CELLS_MAX: Final = 500
"""Rectangles that a picture of a history shows."""

VINTAGE_ROWS_MAX: Final = 1_000_000
"""Rows of one table of revisions that are imported at once: it is sorted by record time in memory."""

# --- reads -----------------------------------------------------------------------------------
PAGE_EVENTS_MAX: Final = 1_000
PAGE_BYTES_MAX: Final = 4_194_304
"""Bytes in one page of a list, of the log encrypted ones; its first row or event alone may have more."""
SCAN_BYTES_MAX: Final = 2 * APPEND_BYTES_MAX
"""The same of what folds, verifies and indexes the log, commit by commit."""
FOLLOWERS_MAX: Final = 64
"""Who may follow logs at once, of one process."""
FOLLOW_SECONDS_MAX: Final = 30
"""How long a follower may take for what it was sent, before it is let go."""
CONNECTIONS_MAX: Final = 512
"""Connections of callers that the API holds at once; one more is told to come again, and closed."""
HEAD_SECONDS_MAX: Final = 10
"""How long the head of a request may take, from its first byte on, or from the connection to the first."""
BODY_SECONDS_MAX: Final = 60
"""How long the body of a request may take."""
ANSWER_SECONDS_MAX: Final = 60
"""How long a caller may take nothing of an answer that waits for it, before it is let go."""
LONG_READS_AT_ONCE: Final = 3
"""Reads that hold a connection for long, as differences and replays do, at once in one process."""
LONG_READS_OF_TENANT: Final = 2
"""The same of one tenant: it leaves room to others."""
LONG_READ_WAIT_SECONDS: Final = 15
"""How long a long read waits for its turn."""
PROOF_HASHES_MAX: Final = 128
"""Hashes in one proof about the log: twice the height that a tree of 2^64 commits has."""
EXPORT_LINE_BYTES_MAX: Final = 1_048_576
"""Bytes of one line of an exported log: a commit with as many events as one may hold."""
HISTORY_CELLS_MAX: Final = 10_000
"""Rectangles that one history answer lists."""
PAIR_COMPARISONS_MAX: Final = 1_000_000
"""Comparisons of claims by which one answer tells the past of pairs of names that were ended or erased."""
MERGES_CLAIMS_KEPT_MAX: Final = 65_536
"""Claims of who is one with whom of which one process keeps in memory what they come to, of all tenants."""
JOIN_PAIRS_MAX: Final = 10_000
"""Pairs that one join lists."""
DIFF_CHANGES_MAX: Final = 1_000
"""Changes on one page of a difference between two views."""
DIFF_COMMITS_MAX: Final = 32
"""Commits that are named as those at which one change came about: the newest."""
DIFF_CAUSES_MAX: Final = 64
"""Claims that are named as the causes of one change: the newest."""
VIEWS_MAX: Final = 1_000
"""Views that a tenant may have pinned at once."""
WITHDRAWN_MAX: Final = 1_000
"""Claims that were taken back that one history lists: the newest."""
LISTED_CLAIMS_MAX: Final = 32
"""Claims that are read of a key, and that a resolution lists in each of its lists: the newest."""
LISTED_VALUES_MAX: Final = 1_000
"""Values or occurrences that one resolution lists; it counts all."""
CASES_BYTES_MAX: Final = 67_108_864
"""Bytes of one file of conformance cases."""
BUDGETS_MAX: Final = 8
"""Budgets of tokens that one evaluation packs each question under."""
EVALUATION_BYTES_MAX: Final = 536_870_912
"""Bytes of one file of a public data set, unpacked; LongMemEval's largest has 280 MB."""
WAIT_DEFAULT_MS: Final = 5_000
"""How long a read waits for a commit to be folded before it answers `NotYet`."""
WAIT_MS_MAX: Final = 30_000

# --- questions -------------------------------------------------------------------------------
QUESTION_CHARACTERS_MAX: Final = 4_000
CANDIDATES_MAX: Final = 256
"""Candidates that one proposal may hold."""
KEYS_MAX: Final = 64
"""Keys that one question resolves."""
CLOSURE_EVENTS_MAX: Final = 64
"""Events in the closure of one unit."""
BUDGET_DEFAULT_TOKENS: Final = 2_048
BUDGET_TOKENS_MAX: Final = 200_000
BUDGET_BYTES_MAX: Final = 4_000_000
"""Bytes of evidence that may be asked for, where a question bounds them beside its tokens."""
CHAT_CONTEXT_BYTES: Final = 29_400
"""The ceiling of a whole context of chat lines under which published figures were measured."""
LONG_CONTEXT_BYTES: Final = 60_000
"""The same of long messages."""

# --- measured runs ---------------------------------------------------------------------------
RESAMPLES_DEFAULT: Final = 5_000
"""Resamples of one bootstrap interval."""
BUNDLE_ROWS_MAX: Final = 1_000_000
"""Lines of one file of a bundle: a question times an arm times a budget each."""
BUNDLE_LINE_BYTES_MAX: Final = 1_048_576
"""Bytes of one line of it."""

# --- discovery -------------------------------------------------------------------------------
DISCOVERIES_MAX: Final = 16
"""Discovery processes of one plane, among which tenants are shared out."""
ENDPOINT_BATCH_TEXTS_MAX: Final = 32
"""Texts in one request to an endpoint of embeddings."""
ENDPOINT_TEXT_CHARACTERS_MAX: Final = 8_000
"""Characters of a text that are sent to it; what is past them is not seen."""
ENDPOINT_ATTEMPTS_MAX: Final = 4
"""Times that it is asked the same when it is busy or gone."""
ENDPOINT_SECONDS_MAX: Final = 60.0
"""For one request to it, over all attempts, the waits between them and all parts of their answers."""
ENDPOINT_ANSWER_BYTES_MAX: Final = 33_554_432
"""Bytes of one answer of it."""

# --- language models ---------------------------------------------------------------------------
MODEL_ATTEMPTS_MAX: Final = 3
"""Times that a language model is asked the same when it is busy or gone."""
MODEL_SECONDS_MAX: Final = 600
"""How long a language model may be given for one prompt, all attempts together."""
MODEL_TOKENS_MAX: Final = 512
"""Tokens that a language model is let say."""
MODEL_ANSWER_BYTES_MAX: Final = 1_048_576
"""Bytes of one answer of an endpoint of language models."""

# --- fold ------------------------------------------------------------------------------------
FOLD_EVENTS_MAX: Final = 2_000
"""Events folded in one transaction; a longer backlog takes several."""
FOLD_LEASE_SECONDS: Final = 150
"""How long one fold may hold its tenant; then its session is ended, and what it wrote with it."""
WORKERS_MAX: Final = 16
"""Worker processes of one plane; each holds a few connections of the database."""
SPAN_LINKS_MAX: Final = 128
"""Commits that one exported span of a fold links to; the first ones."""
BUILDING_EVENTS_MAX: Final = 500
"""The same for an epoch that is being built: a new commit waits no longer than that before it is served."""
DROP_ROWS_MAX: Final = 5_000
"""Claims, lines and other rows of a dropped epoch deleted in one transaction."""
EXTRACTED_CLAIMS_MAX: Final = 64
"""Claims that the extractor may read out of one text."""

# One append must fit in one page, or a reader could see half of it; and in one fold.
assert APPEND_EVENTS_MAX <= PAGE_EVENTS_MAX
assert APPEND_BYTES_MAX + 1_024 * PAGE_EVENTS_MAX <= SCAN_BYTES_MAX
assert APPEND_EVENTS_MAX <= FOLD_EVENTS_MAX
assert BUILDING_EVENTS_MAX <= FOLD_EVENTS_MAX
# An erasure folds first.
assert FOLD_LEASE_SECONDS < ERASURE_SECONDS_MAX
assert RETENTION_EVENTS_MAX <= ERASED_EVENTS_MAX
# An event is the largest row; each of its bytes takes two digits.
assert 3 * EVENT_BYTES_MAX < RESTORE_LINE_BYTES_MAX
# A hash is 64 digits between quotes.
assert 128 * APPEND_EVENTS_MAX < EXPORT_LINE_BYTES_MAX
# An event that passes its own bounds must fit in an append.
assert EVENT_BYTES_MAX <= APPEND_BYTES_MAX
assert TARGETS_MAX < EVENT_REFERENCES_MAX <= APPEND_REFERENCES_MAX
assert VALUE_BYTES_MAX < EVENT_BYTES_MAX
# Whoever is alone is never turned away.
assert APPENDS_WAITING_BYTES_MAX >= 2 * APPEND_BYTES_MAX
# A contract is stored as text in a value, where each quotation mark takes two bytes.
assert 2 * SCHEMA_BYTES_MAX < VALUE_BYTES_MAX
# Any value fits a schema of some size, and any schema a value.
assert JSON_PARTS_MAX < JSON_CHECKS_MAX
assert SCHEMA_PARTS_MAX < JSON_CHECKS_MAX
assert UNIT_CHARACTERS_MAX < NUMBER_CHARACTERS_MAX
assert BUDGET_DEFAULT_TOKENS <= BUDGET_TOKENS_MAX
assert CHAT_CONTEXT_BYTES < LONG_CONTEXT_BYTES <= BUDGET_BYTES_MAX
assert WAIT_DEFAULT_MS <= WAIT_MS_MAX
# A key that is read whole shows every line that its claims made.
assert LISTED_CLAIMS_MAX <= LISTED_VALUES_MAX
