-- The log's Merkle tree, as RFC 6962 has it: its leaves are the hashes of the commits.
--
-- `commit.tree` is the hash of the largest whole subtree that ends with the commit: of commit 12, that
-- over 9 to 12. Every node of the tree is one of these, or is made of a few, so no other is stored.

CREATE FUNCTION echoplane_tree_leaf(p_hash bytea) RETURNS bytea
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN sha256('\x00'::bytea || p_hash);

CREATE FUNCTION echoplane_tree_node(p_left bytea, p_right bytea) RETURNS bytea
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN sha256('\x01'::bytea || p_left || p_right);

ALTER TABLE commit ADD COLUMN tree bytea;

-- What was appended before there was a tree.
ALTER TABLE commit NO FORCE ROW LEVEL SECURITY;
DO $do$
DECLARE
    v_commit record;
    v_tree bytea;
    v_step bigint;
BEGIN
    FOR v_commit IN SELECT c.tenant, c.commit, c.hash FROM commit AS c ORDER BY c.tenant, c.commit LOOP
        v_tree := echoplane_tree_leaf(v_commit.hash);
        v_step := 1;
        WHILE v_commit.commit & v_step = 0 LOOP
            v_tree := echoplane_tree_node(
                (SELECT c.tree FROM commit AS c
                 WHERE c.tenant = v_commit.tenant AND c.commit = v_commit.commit - v_step),
                v_tree
            );
            v_step := v_step << 1;
        END LOOP;
        UPDATE commit AS c SET tree = v_tree WHERE c.tenant = v_commit.tenant AND c.commit = v_commit.commit;
    END LOOP;
END
$do$;
ALTER TABLE commit FORCE ROW LEVEL SECURITY;
ALTER TABLE commit ALTER COLUMN tree SET NOT NULL;

-- As in 0001, with the tree.
CREATE OR REPLACE FUNCTION echoplane_append(
    p_tenant text,
    p_clock timestamptz,
    p_counts integer[],
    p_expected bigint[],
    p_event_ids text[],
    p_kinds text[],
    p_streams bytea[],
    p_sources bytea[],
    p_idempotency bytea[],
    p_contents bytea[],
    p_headers bytea[],
    p_ciphertexts bytea[],
    p_wrapped_keys bytea[]
) RETURNS TABLE (
    o_outcome text, o_commit bigint, o_first bigint, o_recorded_at timestamptz, o_previous bytea, o_hash bytea
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $function$
#variable_conflict use_column
DECLARE
    v_commit bigint;
    v_position bigint;
    v_recorded_at timestamptz;
    v_hash bytea;
    v_previous bytea;
    v_hashes bytea[];
    v_from integer;
    v_to integer := 0;
    v_written boolean := false;
    v_live boolean;
    v_tree bytea;
    v_step bigint;
BEGIN
    IF p_clock IS NOT NULL AND NOT pg_has_role(session_user, 'echoplane_backfill', 'MEMBER') THEN
        RAISE insufficient_privilege USING MESSAGE = 'only members of echoplane_backfill may state the clock';
    END IF;
    PERFORM set_config('echoplane.tenant', p_tenant, true);

    -- The lock comes before anything is numbered: two writers that number first and commit in the
    -- other order would let a reader move past a position that appears later.
    SELECT h.commit, h.position, h.recorded_at, h.hash, h.live
    INTO v_commit, v_position, v_recorded_at, v_hash, v_live
    FROM head AS h WHERE h.tenant = p_tenant FOR UPDATE;
    IF NOT FOUND THEN
        RETURN QUERY SELECT 'no_tenant', NULL::bigint, NULL::bigint, NULL::timestamptz, NULL::bytea, NULL::bytea
        FROM generate_series(1, cardinality(p_counts));
        RETURN;
    END IF;

    IF v_live AND p_clock IS NOT NULL THEN
        RAISE integrity_constraint_violation USING
            MESSAGE = 'a tenant that has recorded by its own clock takes no other', CONSTRAINT = 'head_not_live',
            TABLE = 'head';
    END IF;
    IF EXISTS (
        SELECT FROM unnest(p_headers) AS u (header)
        WHERE starts_with(convert_from(u.header, 'UTF8'), '{"backfilled":true,') <> (p_clock IS NOT NULL)
    ) THEN
        RAISE integrity_constraint_violation USING
            MESSAGE = 'a header says whether its clock was stated', CONSTRAINT = 'event_says_backfilled',
            TABLE = 'event';
    END IF;

    FOR v_append IN 1 .. cardinality(p_counts) LOOP
        v_from := v_to + 1;
        v_to := v_to + p_counts[v_append];

        IF EXISTS (
            SELECT FROM event AS e
            WHERE e.tenant = p_tenant AND e.idempotency_digest = ANY (p_idempotency[v_from:v_to])
        ) THEN
            RETURN QUERY SELECT 'known', NULL::bigint, NULL::bigint, NULL::timestamptz, NULL::bytea, NULL::bytea;
            CONTINUE;
        END IF;

        IF p_expected[v_append] IS NOT NULL AND p_expected[v_append] <> (
            SELECT coalesce(max(e.stream_version), 0) FROM event AS e
            WHERE e.tenant = p_tenant AND e.stream_digest = p_streams[v_from]
        ) THEN
            RETURN QUERY SELECT 'version', NULL::bigint, NULL::bigint, NULL::timestamptz, NULL::bytea, NULL::bytea;
            CONTINUE;
        END IF;

        v_previous := v_hash;
        v_commit := v_commit + 1;
        v_recorded_at := greatest(coalesce(p_clock, clock_timestamp()), v_recorded_at + interval '1 microsecond');
        v_hashes := ARRAY(
            SELECT echoplane_event_hash(u.header, u.ciphertext)
            FROM unnest(p_headers[v_from:v_to], p_ciphertexts[v_from:v_to])
                WITH ORDINALITY AS u (header, ciphertext, n)
            ORDER BY u.n
        );
        v_hash := echoplane_commit_hash(v_previous, p_tenant, v_commit, v_recorded_at, v_position + 1, v_hashes);

        -- The largest whole subtree that ends here: one read for each that it is put together from.
        v_tree := echoplane_tree_leaf(v_hash);
        v_step := 1;
        WHILE v_commit & v_step = 0 LOOP
            v_tree := echoplane_tree_node(
                (SELECT c.tree FROM commit AS c WHERE c.tenant = p_tenant AND c.commit = v_commit - v_step), v_tree
            );
            v_step := v_step << 1;
        END LOOP;

        INSERT INTO commit (tenant, commit, recorded_at, first_position, event_count, previous_hash, hash, tree)
        VALUES (p_tenant, v_commit, v_recorded_at, v_position + 1, p_counts[v_append], v_previous, v_hash, v_tree);

        INSERT INTO event (
            tenant, position, commit, event_id, kind, stream_digest, stream_version, source_digest,
            idempotency_digest, content_digest, header, ciphertext, hash
        )
        SELECT
            p_tenant, v_position + u.n, v_commit, u.event_id, u.kind, u.stream,
            s.version + row_number() OVER (PARTITION BY u.stream ORDER BY u.n),
            u.source, u.idempotency, u.content, u.header, u.ciphertext, u.hash
        FROM unnest(
            p_event_ids[v_from:v_to], p_kinds[v_from:v_to], p_streams[v_from:v_to], p_sources[v_from:v_to],
            p_idempotency[v_from:v_to], p_contents[v_from:v_to], p_headers[v_from:v_to],
            p_ciphertexts[v_from:v_to], v_hashes
        ) WITH ORDINALITY AS u (event_id, kind, stream, source, idempotency, content, header, ciphertext, hash, n)
        JOIN (
            SELECT d.stream, coalesce(
                (SELECT max(e.stream_version) FROM event AS e
                 WHERE e.tenant = p_tenant AND e.stream_digest = d.stream), 0) AS version
            FROM (SELECT DISTINCT unnest(p_streams[v_from:v_to]) AS stream) AS d
        ) AS s ON s.stream = u.stream;

        INSERT INTO event_key (tenant, event_id, wrapped_key)
        SELECT p_tenant, u.event_id, u.wrapped_key
        FROM unnest(p_event_ids[v_from:v_to], p_wrapped_keys[v_from:v_to]) AS u (event_id, wrapped_key);

        RETURN QUERY SELECT 'written', v_commit, v_position + 1, v_recorded_at, v_previous, v_hash;
        v_position := v_position + p_counts[v_append];
        v_written := true;
    END LOOP;

    IF v_written THEN
        INSERT INTO outbox (tenant, commit) VALUES (p_tenant, v_commit)
        ON CONFLICT (tenant) DO UPDATE SET commit = excluded.commit;
        UPDATE head
        SET commit = v_commit, position = v_position, recorded_at = v_recorded_at, hash = v_hash,
            live = p_clock IS NULL
        WHERE tenant = p_tenant;
    END IF;
END
$function$;
