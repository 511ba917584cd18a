-- Frozen with revision 0001. What the schema is now stands in ledger/_tables.py.

CREATE TABLE tenant (
    tenant TEXT NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    wrapped_keys BYTEA NOT NULL,
    PRIMARY KEY (tenant),
    CONSTRAINT tenant_name CHECK (tenant ~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$')
);

CREATE TABLE commit (
    tenant TEXT NOT NULL,
    commit BIGINT NOT NULL,
    recorded_at TIMESTAMP WITH TIME ZONE NOT NULL,
    first_position BIGINT NOT NULL,
    event_count INTEGER NOT NULL,
    previous_hash BYTEA NOT NULL,
    hash BYTEA NOT NULL,
    PRIMARY KEY (tenant, commit),
    CONSTRAINT commit_clock UNIQUE (tenant, recorded_at),
    CONSTRAINT commit_of_tenant FOREIGN KEY(tenant) REFERENCES tenant (tenant)
);

CREATE TABLE context (
    tenant TEXT NOT NULL,
    context_hash TEXT NOT NULL,
    content_hash TEXT NOT NULL,
    ciphertext BYTEA NOT NULL,
    PRIMARY KEY (tenant, context_hash),
    CONSTRAINT context_of_tenant FOREIGN KEY(tenant) REFERENCES tenant (tenant)
);

CREATE TABLE epoch (
    tenant TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    commit BIGINT NOT NULL,
    position BIGINT NOT NULL,
    projector_version TEXT NOT NULL,
    state TEXT NOT NULL,
    PRIMARY KEY (tenant, epoch),
    CONSTRAINT epoch_of_tenant FOREIGN KEY(tenant) REFERENCES tenant (tenant),
    CONSTRAINT epoch_state CHECK (state IN ('serving', 'building', 'retired'))
);

CREATE UNIQUE INDEX epoch_serving_once ON epoch (tenant) WHERE state = 'serving';

CREATE TABLE head (
    tenant TEXT NOT NULL,
    commit BIGINT NOT NULL,
    position BIGINT NOT NULL,
    recorded_at TIMESTAMP WITH TIME ZONE NOT NULL,
    hash BYTEA NOT NULL,
    live BOOLEAN NOT NULL,
    PRIMARY KEY (tenant),
    CONSTRAINT head_of_tenant FOREIGN KEY(tenant) REFERENCES tenant (tenant)
);

CREATE TABLE outbox (
    tenant TEXT NOT NULL,
    commit BIGINT NOT NULL,
    PRIMARY KEY (tenant),
    CONSTRAINT outbox_of_tenant FOREIGN KEY(tenant) REFERENCES tenant (tenant)
);

CREATE TABLE token (
    tenant TEXT NOT NULL,
    token_digest BYTEA NOT NULL,
    label TEXT NOT NULL,
    rights TEXT[] NOT NULL,
    actors TEXT[] NOT NULL,
    classes TEXT[] NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    revoked_at TIMESTAMP WITH TIME ZONE,
    PRIMARY KEY (tenant, token_digest),
    CONSTRAINT token_of_tenant FOREIGN KEY(tenant) REFERENCES tenant (tenant)
);

CREATE TABLE trail_head (
    tenant TEXT NOT NULL,
    number BIGINT NOT NULL,
    PRIMARY KEY (tenant),
    CONSTRAINT trail_head_of_tenant FOREIGN KEY(tenant) REFERENCES tenant (tenant)
);

CREATE TABLE unit_vector (
    tenant TEXT NOT NULL,
    unit_id TEXT NOT NULL,
    model_digest TEXT NOT NULL,
    position BIGINT NOT NULL,
    text_digest BYTEA NOT NULL,
    embedding VECTOR(384) NOT NULL,
    PRIMARY KEY (tenant, unit_id, model_digest),
    CONSTRAINT unit_vector_of_tenant FOREIGN KEY(tenant) REFERENCES tenant (tenant)
);

CREATE INDEX unit_vector_text ON unit_vector (tenant, model_digest, text_digest);

CREATE TABLE context_key (
    tenant TEXT NOT NULL,
    context_hash TEXT NOT NULL,
    wrapped_key BYTEA NOT NULL,
    PRIMARY KEY (tenant, context_hash),
    CONSTRAINT key_of_context FOREIGN KEY(tenant, context_hash) REFERENCES context (tenant, context_hash)
);

CREATE TABLE dead_letter (
    tenant TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    position BIGINT NOT NULL,
    error TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    first_at TIMESTAMP WITH TIME ZONE NOT NULL,
    last_at TIMESTAMP WITH TIME ZONE NOT NULL,
    PRIMARY KEY (tenant, epoch, position),
    CONSTRAINT dead_letter_of_epoch FOREIGN KEY(tenant, epoch) REFERENCES epoch (tenant, epoch)
);

CREATE TABLE event (
    tenant TEXT NOT NULL,
    position BIGINT NOT NULL,
    commit BIGINT NOT NULL,
    event_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    stream_digest BYTEA NOT NULL,
    stream_version BIGINT NOT NULL,
    source_digest BYTEA,
    idempotency_digest BYTEA,
    content_digest BYTEA NOT NULL,
    header BYTEA NOT NULL,
    ciphertext BYTEA NOT NULL,
    hash BYTEA NOT NULL,
    PRIMARY KEY (tenant, position),
    CONSTRAINT event_id_once UNIQUE (tenant, event_id),
    CONSTRAINT event_idempotency_once UNIQUE (tenant, idempotency_digest),
    CONSTRAINT event_stream_version_once UNIQUE (tenant, stream_digest, stream_version),
    CONSTRAINT event_of_commit FOREIGN KEY(tenant, commit) REFERENCES commit (tenant, commit)
);

CREATE INDEX event_source ON event (tenant, source_digest);

CREATE TABLE line (
    tenant TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    line BIGINT GENERATED ALWAYS AS IDENTITY,
    entity TEXT NOT NULL,
    relation TEXT NOT NULL,
    part TEXT NOT NULL,
    tail BYTEA,
    PRIMARY KEY (tenant, line),
    CONSTRAINT line_once UNIQUE (tenant, epoch, entity, relation, part),
    CONSTRAINT line_of_epoch FOREIGN KEY(tenant, epoch) REFERENCES epoch (tenant, epoch)
);

CREATE TABLE relation (
    tenant TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    relation TEXT NOT NULL,
    commit BIGINT NOT NULL,
    contract BYTEA NOT NULL,
    seal BYTEA NOT NULL,
    PRIMARY KEY (tenant, epoch, relation),
    CONSTRAINT relation_of_epoch FOREIGN KEY(tenant, epoch) REFERENCES epoch (tenant, epoch)
);

CREATE TABLE trail (
    tenant TEXT NOT NULL,
    trail_id TEXT NOT NULL,
    number BIGINT NOT NULL,
    context_hash TEXT NOT NULL,
    asked_at TIMESTAMP WITH TIME ZONE NOT NULL,
    body BYTEA NOT NULL,
    ciphertext BYTEA NOT NULL,
    seal BYTEA NOT NULL,
    PRIMARY KEY (tenant, trail_id),
    CONSTRAINT trail_number_once UNIQUE (tenant, number),
    CONSTRAINT trail_of_context FOREIGN KEY(tenant, context_hash) REFERENCES context (tenant, context_hash)
);

CREATE INDEX trail_by_context ON trail (tenant, context_hash);

CREATE TABLE cell (
    tenant TEXT NOT NULL,
    cell BIGINT GENERATED ALWAYS AS IDENTITY,
    line BIGINT NOT NULL,
    valid TSTZRANGE NOT NULL,
    known INT8RANGE NOT NULL,
    state TEXT NOT NULL,
    claims BYTEA[] NOT NULL,
    PRIMARY KEY (tenant, cell),
    CONSTRAINT cell_of_line FOREIGN KEY(tenant, line) REFERENCES line (tenant, line),
    CONSTRAINT cell_not_empty CHECK (NOT isempty(valid) AND NOT isempty(known)),
    CONSTRAINT cell_bounds_are_finite_or_open CHECK (coalesce(isfinite(lower(valid)), true) AND coalesce(isfinite(upper(valid)), true)),
    CONSTRAINT cell_known_from_a_commit CHECK (lower(known) IS NOT NULL),
    CONSTRAINT cell_open_disjoint EXCLUDE USING gist (line WITH =, valid WITH &&, tenant WITH =) WHERE (upper_inf(known))
);

CREATE INDEX cell_lookup ON cell USING gist (line, known, valid);

CREATE TABLE claim (
    tenant TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    claim_id BYTEA NOT NULL,
    position BIGINT NOT NULL,
    ordinal INTEGER NOT NULL,
    commit BIGINT NOT NULL,
    event_id TEXT NOT NULL,
    entity TEXT NOT NULL,
    relation TEXT NOT NULL,
    stance TEXT NOT NULL,
    body BYTEA NOT NULL,
    seal BYTEA NOT NULL,
    PRIMARY KEY (tenant, epoch, claim_id),
    CONSTRAINT claim_position_once UNIQUE (tenant, epoch, position, ordinal),
    CONSTRAINT claim_of_epoch FOREIGN KEY(tenant, epoch) REFERENCES epoch (tenant, epoch),
    CONSTRAINT claim_of_event FOREIGN KEY(tenant, event_id) REFERENCES event (tenant, event_id)
);

CREATE INDEX claim_by_event ON claim (tenant, epoch, event_id);

CREATE INDEX claim_identity ON claim (tenant, epoch, position) WHERE relation IN ('same_as', 'not_same_as');

CREATE INDEX claim_of_key ON claim (tenant, epoch, entity, relation, position, ordinal);

CREATE TABLE reach (
    tenant TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    entity TEXT NOT NULL,
    relation TEXT NOT NULL,
    claim_id BYTEA NOT NULL,
    PRIMARY KEY (tenant, epoch, entity, relation, claim_id),
    CONSTRAINT reach_of_claim FOREIGN KEY(tenant, epoch, claim_id) REFERENCES claim (tenant, epoch, claim_id)
);

CREATE INDEX reach_by_claim ON reach (tenant, epoch, claim_id);

CREATE TABLE event_key (
    tenant TEXT NOT NULL,
    event_id TEXT NOT NULL,
    wrapped_key BYTEA NOT NULL,
    PRIMARY KEY (tenant, event_id),
    CONSTRAINT key_of_event FOREIGN KEY(tenant, event_id) REFERENCES event (tenant, event_id)
);

CREATE TABLE trail_key (
    tenant TEXT NOT NULL,
    trail_id TEXT NOT NULL,
    wrapped_key BYTEA NOT NULL,
    PRIMARY KEY (tenant, trail_id),
    CONSTRAINT key_of_trail FOREIGN KEY(tenant, trail_id) REFERENCES trail (tenant, trail_id)
);

