-- The only ways into the log. They run with their owner's rights, so that the plane's role can append
-- and can do nothing else to `head`, `commit`, `event` and `event_key`.

CREATE FUNCTION echoplane_create_tenant(p_tenant text, p_wrapped_keys bytea, p_created_at timestamptz)
RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $function$
BEGIN
    PERFORM set_config('echoplane.tenant', p_tenant, true);
    INSERT INTO tenant (tenant, created_at, wrapped_keys) VALUES (p_tenant, p_created_at, p_wrapped_keys)
    ON CONFLICT (tenant) DO NOTHING;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    -- Commit 0 is the empty log: before every clock, with a hash of zeros.
    INSERT INTO head (tenant, commit, position, recorded_at, hash, live)
    VALUES (p_tenant, 0, 0, '1970-01-01T00:00:00Z', decode(repeat('00', 32), 'hex'), false);
    INSERT INTO epoch (tenant, epoch, commit, position, projector_version, state)
    VALUES (p_tenant, 1, 0, 0, '', 'serving');
    INSERT INTO trail_head (tenant, number) VALUES (p_tenant, 0);
    RETURN true;
END
$function$;

-- Bytes with their length before them: no two lists of parts read as one.
CREATE FUNCTION echoplane_framed(p_part bytea) RETURNS bytea
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN int8send(octet_length(p_part)::bigint) || p_part;

CREATE FUNCTION echoplane_event_hash(p_header bytea, p_ciphertext bytea) RETURNS bytea
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN sha256(
    echoplane_framed('echoplane/event/1'::bytea) || echoplane_framed(p_header) || echoplane_framed(p_ciphertext)
);

CREATE FUNCTION echoplane_commit_hash(
    p_previous bytea, p_tenant text, p_commit bigint, p_recorded_at timestamptz, p_first bigint, p_hashes bytea[]
) RETURNS bytea
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN sha256(
    echoplane_framed('echoplane/commit/1'::bytea)
    || echoplane_framed(p_previous)
    || echoplane_framed(convert_to(p_tenant, 'UTF8'))
    || int8send(p_commit)
    || int8send((extract(epoch FROM p_recorded_at) * 1000000)::bigint)
    || int8send(p_first)
    || int8send(cardinality(p_hashes)::bigint)
    || (SELECT string_agg(u.hash, ''::bytea ORDER BY u.n) FROM unnest(p_hashes) WITH ORDINALITY AS u (hash, n))
);

-- Appends one or several commits of one tenant, each whole or not at all, in one round trip.
--
-- The events of all appends stand in a row; `p_counts` says how many belong to each. An append is
-- written, or is `known` (an idempotency key of it stands in the log) or `version` (its stream has
-- moved) and changes nothing. `p_clock` NULL is the server's own clock; another reading is for
-- members of echoplane_backfill alone, and refused, not ignored, for everyone else. It is taken only
-- where every commit so far was backfilled too, and each header says so: nobody forges a live past.
CREATE FUNCTION echoplane_append(
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

        INSERT INTO commit (tenant, commit, recorded_at, first_position, event_count, previous_hash, hash)
        VALUES (p_tenant, v_commit, v_recorded_at, v_position + 1, p_counts[v_append], v_previous, v_hash);

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

-- A cell is closed once and never changes again.
CREATE FUNCTION echoplane_cell_closes_once() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, public, pg_temp
AS $function$
BEGIN
    IF NOT upper_inf(OLD.known) OR upper_inf(NEW.known) OR lower(NEW.known) <> lower(OLD.known)
        OR (NEW.tenant, NEW.cell, NEW.line, NEW.valid, NEW.state, NEW.claims)
            IS DISTINCT FROM (OLD.tenant, OLD.cell, OLD.line, OLD.valid, OLD.state, OLD.claims)
    THEN
        RAISE integrity_constraint_violation USING
            MESSAGE = 'a cell is closed once, by the upper bound of known, and changes in nothing else',
            CONSTRAINT = 'cell_closes_once', TABLE = 'cell';
    END IF;
    RETURN NEW;
END
$function$;

CREATE TRIGGER cell_closes_once BEFORE UPDATE ON cell
FOR EACH ROW EXECUTE FUNCTION echoplane_cell_closes_once();
