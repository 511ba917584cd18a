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

-- One read for each subtree that it is put together from.
CREATE FUNCTION echoplane_tree_of(p_tenant text, p_commit bigint, p_hash bytea) RETURNS bytea
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, public, pg_temp
AS $function$
DECLARE
    v_tree bytea := echoplane_tree_leaf(p_hash);
    v_step bigint := 1;
BEGIN
    WHILE p_commit & v_step = 0 LOOP
        v_tree := echoplane_tree_node(
            (SELECT c.tree FROM commit AS c WHERE c.tenant = p_tenant AND c.commit = p_commit - v_step), v_tree
        );
        v_step := v_step << 1;
    END LOOP;
    RETURN v_tree;
END
$function$;

CREATE FUNCTION echoplane_grow_tree() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, public, pg_temp
AS $function$
BEGIN
    NEW.tree := echoplane_tree_of(NEW.tenant, NEW.commit, NEW.hash);
    RETURN NEW;
END
$function$;

ALTER TABLE commit ADD COLUMN tree bytea;

-- What was appended before there was a tree.
ALTER TABLE commit NO FORCE ROW LEVEL SECURITY;
DO $do$
DECLARE
    v_commit record;
BEGIN
    FOR v_commit IN SELECT c.tenant, c.commit, c.hash FROM commit AS c ORDER BY c.tenant, c.commit LOOP
        UPDATE commit AS c SET tree = echoplane_tree_of(v_commit.tenant, v_commit.commit, v_commit.hash)
        WHERE c.tenant = v_commit.tenant AND c.commit = v_commit.commit;
    END LOOP;
END
$do$;
ALTER TABLE commit FORCE ROW LEVEL SECURITY;
ALTER TABLE commit ALTER COLUMN tree SET NOT NULL;
CREATE TRIGGER commit_tree BEFORE INSERT ON commit FOR EACH ROW EXECUTE FUNCTION echoplane_grow_tree();

-- Of all events of the log, as they are stored: what a quota bounds, without reading them.
ALTER TABLE head ADD COLUMN bytes BIGINT NOT NULL DEFAULT 0;
ALTER TABLE head ALTER COLUMN bytes DROP DEFAULT;
ALTER TABLE head NO FORCE ROW LEVEL SECURITY;
ALTER TABLE event NO FORCE ROW LEVEL SECURITY;
UPDATE head AS h SET bytes = e.bytes
FROM (
    SELECT tenant, sum(octet_length(header) + octet_length(ciphertext)) AS bytes FROM event GROUP BY tenant
) AS e WHERE e.tenant = h.tenant;
ALTER TABLE head FORCE ROW LEVEL SECURITY;
ALTER TABLE event FORCE ROW LEVEL SECURITY;

-- What a caller says that events have in common, found by equality as streams are.
ALTER TABLE event ADD COLUMN correlation_digest bytea;
CREATE INDEX event_correlation ON event (tenant, correlation_digest, position)
WHERE correlation_digest IS NOT NULL;

-- Without a key of its own an event is known by its source's id, and the two digests are one.
DROP INDEX event_source;
CREATE INDEX event_source ON event (tenant, source_digest)
WHERE source_digest IS DISTINCT FROM idempotency_digest AND source_digest IS NOT NULL;

-- Asked once for all keys of a statement, where a foreign key asks for each and locks each event.
ALTER TABLE event_key DROP CONSTRAINT key_of_event;
CREATE FUNCTION echoplane_keys_are_of_events() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, public, pg_temp
AS $function$
BEGIN
    IF EXISTS (
        SELECT FROM fresh AS f WHERE NOT EXISTS (
            SELECT FROM event AS e WHERE e.tenant = f.tenant AND e.event_id = f.event_id OFFSET 0
        )
    ) THEN
        RAISE foreign_key_violation USING
            MESSAGE = 'a key is of an event of its tenant', CONSTRAINT = 'key_of_event', TABLE = 'event_key';
    END IF;
    RETURN NULL;
END
$function$;
-- An append makes both from one array, and need not ask. Nobody else may insert a key but the owner, and who
-- restores a tenant, by a function that takes the setting back.
CREATE TRIGGER key_comes_from_event AFTER INSERT ON event_key REFERENCING NEW TABLE AS fresh
FOR EACH STATEMENT WHEN (current_setting('echoplane.appending', true) IS DISTINCT FROM 'on')
EXECUTE FUNCTION echoplane_keys_are_of_events();
CREATE TRIGGER key_is_renamed AFTER UPDATE ON event_key REFERENCING NEW TABLE AS fresh
FOR EACH STATEMENT EXECUTE FUNCTION echoplane_keys_are_of_events();

-- The other end: an event neither goes nor gets another name while it has a key.
CREATE FUNCTION echoplane_event_has_key() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, public, pg_temp
AS $function$
BEGIN
    IF EXISTS (SELECT FROM event_key AS k WHERE k.tenant = OLD.tenant AND k.event_id = OLD.event_id) THEN
        RAISE foreign_key_violation USING
            MESSAGE = 'an event with a key stays', CONSTRAINT = 'key_of_event', TABLE = 'event_key';
    END IF;
    RETURN NULL;
END
$function$;
CREATE TRIGGER event_has_key AFTER DELETE ON event FOR EACH ROW EXECUTE FUNCTION echoplane_event_has_key();
CREATE TRIGGER event_with_key_is_renamed AFTER UPDATE ON event FOR EACH ROW
WHEN ((OLD.tenant, OLD.event_id) IS DISTINCT FROM (NEW.tenant, NEW.event_id))
EXECUTE FUNCTION echoplane_event_has_key();

DROP FUNCTION echoplane_append;

-- Appends one or several commits of one tenant, each whole or not at all, in one round trip.
--
-- The events of all appends stand in a row; `p_counts` says how many belong to each. Each is judged as
-- if those before it were written already, and is `written`, or changes nothing: `contracts` (others are
-- in force than its values were held against), `known` (an idempotency key of it stands in the log) or
-- `version` (its stream has moved). What is written goes into each table by one statement, whatever the
-- number of appends; and one that is not leaves no gap.
--
-- `p_streams` has each stream once, `p_stream_of` says of each event which of them is its own.
--
-- `p_relations` is, for each append, the position of the newest `relation` event that its values were
-- held against, 0 for none, and `p_epochs` the epoch that served then. NULL asks for nothing: there is no
-- value in the append. Whoever registers a contract takes the same lock.
--
-- `p_clock` NULL is the server's own clock; another reading is for members of echoplane_backfill alone,
-- and refused, not ignored, for everyone else. It is taken only where every commit so far was
-- backfilled too, and each header says so: nobody forges a live past.
--
-- Which keys are known is asked of the first event of each append alone, and of all only when that one is
-- known or the index of keys refuses a row: to look for each and then to insert it is to go down that
-- index twice. What was refused so is written again, without the appends that are known.
--
-- Arrays are unnested in lists of columns: as tables in FROM each would be copied once more. No sequential
-- scan: a plan that was made while the log was short would read all of it for ever.
CREATE FUNCTION echoplane_append(
    p_tenant text,
    p_clock timestamptz,
    p_counts integer[],
    p_expected bigint[],
    p_relations bigint[],
    p_epochs integer[],
    p_event_ids text[],
    p_kinds text[],
    p_streams bytea[],
    p_stream_of integer[],
    p_sources bytea[],
    p_correlations bytea[],
    p_idempotency bytea[],
    p_contents bytea[],
    p_headers bytea[],
    p_ciphertexts bytea[],
    p_wrapped_keys bytea[]
) RETURNS TABLE (
    o_outcome text, o_commit bigint, o_first bigint, o_recorded_at timestamptz, o_previous bytea, o_hash bytea
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp SET enable_seqscan = off
AS $function$
#variable_conflict use_column
DECLARE
    v_start head;
    v_head head;
    v_first_relation bigint;
    v_relation bigint;
    v_epoch integer;
    v_befores bigint[];
    v_event_hashes bytea[];
    v_sizes integer[];
    v_says_otherwise boolean;
    v_previous bytea;
    v_from integer;
    v_to integer;
    v_outcome text;
    v_outcomes text[];
    v_constraint text;
    -- Keys that stand in the log already, and those that several of the appends have; NULL until asked.
    v_known bytea[];
    v_shared bytea[];
    -- Of each event the commit, NULL where it is not written; of each commit what its row holds.
    v_commits bigint[];
    v_positions bigint[];
    v_versions bigint[];
    v_numbers bigint[];
    v_clocks timestamptz[];
    v_firsts bigint[];
    v_counts integer[];
    v_previouses bytea[];
    v_hashes bytea[];
BEGIN
    IF p_clock IS NOT NULL AND NOT pg_has_role(session_user, 'echoplane_backfill', 'MEMBER') THEN
        RAISE insufficient_privilege USING MESSAGE = 'only members of echoplane_backfill may state the clock';
    END IF;
    PERFORM set_config('echoplane.tenant', p_tenant, true);

    -- The lock comes before anything is numbered: two writers that number first and commit in the
    -- other order would let a reader move past a position that appears later.
    SELECT * INTO v_start FROM head AS h WHERE h.tenant = p_tenant FOR UPDATE;
    IF NOT FOUND THEN
        RETURN QUERY SELECT 'no_tenant', NULL::bigint, NULL::bigint, NULL::timestamptz, NULL::bytea, NULL::bytea
        FROM generate_series(1, cardinality(p_counts));
        RETURN;
    END IF;

    IF v_start.live AND p_clock IS NOT NULL THEN
        RAISE integrity_constraint_violation USING
            MESSAGE = 'a tenant that has recorded by its own clock takes no other', CONSTRAINT = 'head_not_live',
            TABLE = 'head';
    END IF;
    SELECT
        array_agg(echoplane_event_hash(u.header, u.ciphertext)),
        array_agg(octet_length(u.header) + octet_length(u.ciphertext)),
        bool_or((substr(u.header, 1, 19) = '{"backfilled":true,'::bytea) <> (p_clock IS NOT NULL))
    INTO v_event_hashes, v_sizes, v_says_otherwise
    FROM (SELECT unnest(p_headers) AS header, unnest(p_ciphertexts) AS ciphertext) AS u;
    IF v_says_otherwise THEN
        RAISE integrity_constraint_violation USING
            MESSAGE = 'a header says whether its clock was stated', CONSTRAINT = 'event_says_backfilled',
            TABLE = 'event';
    END IF;

    v_first_relation := coalesce(
        (SELECT max(e.position) FROM event AS e WHERE e.tenant = p_tenant AND e.kind = 'relation'), 0
    );
    v_epoch := (SELECT e.epoch FROM epoch AS e WHERE e.tenant = p_tenant AND e.state = 'serving');
    v_befores := ARRAY(
        SELECT coalesce((
            SELECT max(e.stream_version) FROM event AS e WHERE e.tenant = p_tenant AND e.stream_digest = u.stream
        ), 0)
        FROM unnest(p_streams) WITH ORDINALITY AS u (stream, n) ORDER BY u.n
    );
    IF EXISTS (
        SELECT FROM (
            SELECT p_idempotency[1 + sum(u.count) OVER (ORDER BY u.n) - u.count] AS key
            FROM unnest(p_counts) WITH ORDINALITY AS u (count, n)
        ) AS f
        WHERE EXISTS (
            SELECT FROM event AS e WHERE e.tenant = p_tenant AND e.idempotency_digest = f.key OFFSET 0
        )
    ) THEN
        v_constraint := 'event_idempotency_once';
    END IF;

    <<judging>>
    LOOP
        IF v_constraint IS NOT NULL THEN
            -- Key by key: all at once, the planner takes a few hundred for a reason to read the whole log.
            v_known := ARRAY(
                SELECT u.key FROM unnest(p_idempotency) AS u (key)
                WHERE u.key IS NOT NULL AND EXISTS (
                    SELECT FROM event AS e WHERE e.tenant = p_tenant AND e.idempotency_digest = u.key OFFSET 0
                )
            );
            v_shared := ARRAY(
                SELECT u.key FROM unnest(p_idempotency) AS u (key) WHERE u.key IS NOT NULL
                GROUP BY u.key HAVING count(*) > 1
            );
        END IF;
        v_head := v_start;
        v_relation := v_first_relation;
        v_to := 0;
        v_outcomes := '{}';
        v_commits := '{}';
        v_numbers := '{}';
        v_clocks := '{}';
        v_firsts := '{}';
        v_counts := '{}';
        v_previouses := '{}';
        v_hashes := '{}';

        FOR v_append IN 1 .. cardinality(p_counts) LOOP
            v_from := v_to + 1;
            v_to := v_to + p_counts[v_append];
            v_outcome := 'written';
            IF p_relations[v_append] < v_relation
                OR (p_relations[v_append] > 0 AND p_epochs[v_append] IS DISTINCT FROM v_epoch)
            THEN
                v_outcome := 'contracts';
            ELSIF v_known && p_idempotency[v_from:v_to] THEN
                v_outcome := 'known';
            ELSIF p_expected[v_append] <> v_befores[p_stream_of[v_from]] + (
                -- What those before it in this call have added.
                SELECT count(*) FROM unnest(p_stream_of[:v_from - 1], v_commits) AS u (stream, commit)
                WHERE u.stream = p_stream_of[v_from] AND u.commit IS NOT NULL
            ) THEN
                v_outcome := 'version';
                IF v_constraint IS NULL THEN
                    -- Who is told that his stream has moved must not have been there already.
                    v_constraint := 'event_idempotency_once';
                    CONTINUE judging;
                END IF;
            END IF;
            v_outcomes := v_outcomes || v_outcome;
            IF v_outcome <> 'written' THEN
                v_commits := v_commits || array_fill(NULL::bigint, ARRAY[p_counts[v_append]]);
                CONTINUE;
            END IF;

            IF v_shared && p_idempotency[v_from:v_to] THEN
                v_known := v_known || ARRAY(
                    SELECT unnest(p_idempotency[v_from:v_to]) INTERSECT SELECT unnest(v_shared)
                );
            END IF;
            IF 'relation' = ANY (p_kinds[v_from:v_to]) THEN
                v_relation := v_head.position + p_counts[v_append];
            END IF;
            v_previous := v_head.hash;
            v_head.commit := v_head.commit + 1;
            v_head.recorded_at := greatest(
                coalesce(p_clock, clock_timestamp()), v_head.recorded_at + interval '1 microsecond'
            );
            v_head.hash := echoplane_commit_hash(
                v_previous, p_tenant, v_head.commit, v_head.recorded_at, v_head.position + 1,
                v_event_hashes[v_from:v_to]
            );
            v_commits := v_commits || array_fill(v_head.commit, ARRAY[p_counts[v_append]]);
            v_numbers := v_numbers || v_head.commit;
            v_clocks := v_clocks || v_head.recorded_at;
            v_firsts := v_firsts || v_head.position + 1;
            v_counts := v_counts || p_counts[v_append];
            v_previouses := v_previouses || v_previous;
            v_hashes := v_hashes || v_head.hash;
            v_head.position := v_head.position + p_counts[v_append];
        END LOOP;
        EXIT judging WHEN v_head.commit = v_start.commit;

        -- Numbers apart from the rows: what is sorted here would else be copied with all that they hold.
        SELECT array_agg(o.position ORDER BY o.n), array_agg(o.version ORDER BY o.n)
        INTO v_positions, v_versions
        FROM (
            SELECT u.n,
                v_start.position + count(u.commit) OVER (ORDER BY u.n) AS position,
                v_befores[u.stream] + count(u.commit) OVER (PARTITION BY u.stream ORDER BY u.n) AS version
            FROM unnest(v_commits, p_stream_of) WITH ORDINALITY AS u (commit, stream, n)
        ) AS o;
        BEGIN
            -- In order: the tree of each is made of what was inserted before it.
            INSERT INTO commit (tenant, commit, recorded_at, first_position, event_count, previous_hash, hash)
            SELECT p_tenant, u.*
            FROM unnest(v_numbers, v_clocks, v_firsts, v_counts, v_previouses, v_hashes) AS u;
            INSERT INTO event (
                tenant, position, commit, event_id, kind, stream_digest, stream_version, source_digest,
                correlation_digest, idempotency_digest, content_digest, header, ciphertext, hash
            )
            SELECT
                p_tenant, u.position, u.commit, u.event_id, u.kind, p_streams[u.stream], u.version,
                u.source, u.correlation, u.idempotency, u.content, u.header, u.ciphertext, u.hash
            FROM (
                SELECT
                    unnest(v_commits) AS commit, unnest(v_positions) AS position, unnest(v_versions) AS version,
                    unnest(p_event_ids) AS event_id, unnest(p_kinds) AS kind, unnest(p_stream_of) AS stream,
                    unnest(p_sources) AS source, unnest(p_correlations) AS correlation,
                    unnest(p_idempotency) AS idempotency, unnest(p_contents) AS content,
                    unnest(p_headers) AS header, unnest(p_ciphertexts) AS ciphertext,
                    unnest(v_event_hashes) AS hash
            ) AS u
            WHERE u.commit IS NOT NULL;
            EXIT judging;
        EXCEPTION WHEN unique_violation THEN
            IF v_constraint IS NOT NULL THEN
                RAISE;
            END IF;
            GET STACKED DIAGNOSTICS v_constraint = CONSTRAINT_NAME;
            IF v_constraint <> 'event_idempotency_once' THEN
                RAISE;
            END IF;
        END;
    END LOOP;

    IF v_head.commit > v_start.commit THEN
        PERFORM set_config('echoplane.appending', 'on', true);
        INSERT INTO event_key (tenant, event_id, wrapped_key)
        SELECT p_tenant, u.event_id, u.wrapped_key
        FROM (
            SELECT
                unnest(v_commits) AS commit, unnest(p_event_ids) AS event_id,
                unnest(p_wrapped_keys) AS wrapped_key
        ) AS u
        WHERE u.commit IS NOT NULL;
        PERFORM set_config('echoplane.appending', 'off', true);

        INSERT INTO outbox (tenant, commit) VALUES (p_tenant, v_head.commit)
        ON CONFLICT (tenant) DO UPDATE SET commit = excluded.commit;
        UPDATE head
        SET commit = v_head.commit, position = v_head.position, recorded_at = v_head.recorded_at,
            hash = v_head.hash, live = p_clock IS NULL,
            bytes = bytes + (
                SELECT sum(u.size) FROM unnest(v_commits, v_sizes) AS u (commit, size)
                WHERE u.commit IS NOT NULL
            )
        WHERE tenant = p_tenant;
    END IF;

    RETURN QUERY
    SELECT o.outcome, v_numbers[o.at], v_firsts[o.at], v_clocks[o.at], v_previouses[o.at], v_hashes[o.at]
    FROM (
        SELECT u.outcome, u.n,
            CASE u.outcome WHEN 'written' THEN
                count(*) FILTER (WHERE u.outcome = 'written') OVER (ORDER BY u.n)
            END AS at
        FROM unnest(v_outcomes) WITH ORDINALITY AS u (outcome, n)
    ) AS o
    ORDER BY o.n;
END
$function$;

REVOKE ALL ON FUNCTION echoplane_append, echoplane_keys_are_of_events, echoplane_event_has_key FROM PUBLIC;
GRANT EXECUTE ON FUNCTION echoplane_append TO echoplane_plane;
