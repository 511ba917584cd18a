-- What was folded is folded again from the log: cells get a seal, and one is made where they are.
-- The owner is bound by row level security too, so it is taken off for this.
TRUNCATE reach, cell, line, claim, relation;
ALTER TABLE epoch NO FORCE ROW LEVEL SECURITY;
ALTER TABLE outbox NO FORCE ROW LEVEL SECURITY;
ALTER TABLE head NO FORCE ROW LEVEL SECURITY;
UPDATE epoch SET commit = 0, position = 0;
INSERT INTO outbox (tenant, commit) SELECT tenant, commit FROM head WHERE commit > 0
ON CONFLICT (tenant) DO UPDATE SET commit = excluded.commit;
ALTER TABLE epoch FORCE ROW LEVEL SECURITY;
ALTER TABLE outbox FORCE ROW LEVEL SECURITY;
ALTER TABLE head FORCE ROW LEVEL SECURITY;

-- An instant at a cut is found by plain comparisons: under row level security an index is searched by
-- operators that are leakproof alone, and those of ranges are not.
--
-- Commits are the leaves and inner points of a binary tree (8 above 4 and 12, 4 above 2 and 6 …). A cell
-- that is no longer known stands at the one commit of its own that is highest in the tree; one that is
-- still known stands at 0. All cells that a cut q lies in stand at q, above q, or at 0: a handful of
-- points. All cells at one point were known together, so no two of them share an instant: the only one
-- that can hold it is the last that starts at or before it.
DROP INDEX cell_lookup;
ALTER TABLE cell
    ADD COLUMN starts TIMESTAMP WITH TIME ZONE NOT NULL
        GENERATED ALWAYS AS (coalesce(lower(valid), '-infinity'::timestamptz)) STORED,
    ADD COLUMN node BIGINT NOT NULL GENERATED ALWAYS AS (
        CASE WHEN upper_inf(known) THEN 0 ELSE (upper(known) - 1) & ((-1)::bigint << (
            length(ltrim(((lower(known) - 1) # (upper(known) - 1))::bit(64)::text, '0')) - 1)) END
    ) STORED,
    ADD COLUMN seal BYTEA NOT NULL;
CREATE UNIQUE INDEX cell_point ON cell (tenant, line, node, starts);
GRANT UPDATE (known, seal) ON cell TO echoplane_plane;

-- Whose value something is, is asked of all keys of a relation, in the order in which they came.
CREATE INDEX line_of_relation ON line (tenant, epoch, relation, line);

-- Claims that act on others, by the key they are on or bear on: they are needed however old they are.
CREATE INDEX claim_acting ON claim (tenant, epoch, entity, relation, position, ordinal)
    WHERE stance IN ('correct', 'retract', 'settle', 'dispute');
ALTER TABLE reach ADD COLUMN position BIGINT NOT NULL, ADD COLUMN acts BOOLEAN NOT NULL;
CREATE INDEX reach_acting ON reach (tenant, epoch, entity, relation, position) WHERE acts;
-- Whether the claim is a state with a coarse start that names no key of its own: a correction that names targets.
ALTER TABLE reach ADD COLUMN unsure BOOLEAN NOT NULL;
CREATE INDEX reach_unsure ON reach (tenant, epoch, entity, relation, claim_id) WHERE unsure;

-- Where a cell can stand that holds a cut: 0, the cut, and what is above it, up to the root of the tree
-- that holds every folded commit. At the newest one it stands at 0.
CREATE FUNCTION echoplane_nodes(p_cut bigint, p_folded bigint) RETURNS bigint[]
LANGUAGE plpgsql IMMUTABLE
AS $function$
DECLARE
    v_nodes bigint[] := ARRAY[0];
    v_level integer := 1;
BEGIN
    IF p_cut > 0 AND p_cut < p_folded THEN
        v_nodes := v_nodes || p_cut;
        WHILE p_folded >> v_level > 0 LOOP
            v_nodes := v_nodes || (((p_cut >> v_level) | 1) << v_level);
            v_level := v_level + 1;
        END LOOP;
    END IF;
    RETURN v_nodes;
END
$function$;

-- What every key hangs on at a cut: a digest of the contracts, whether there are claims about who is one
-- with whom, and whether anything was erased that left a tombstone; and of one relation, if named, whether its
-- contract takes values of one type alone. One statement: to begin each takes longer than what it finds.
CREATE FUNCTION echoplane_stand(
    p_tenant text, p_epoch integer, p_cut bigint, p_last bigint, p_relation text,
    OUT contracts bytea, OUT has_identity boolean, OUT has_tombstones boolean, OUT is_typed boolean
)
LANGUAGE plpgsql STABLE
AS $function$
#variable_conflict use_column
BEGIN
    SELECT sha256(coalesce(string_agg(
            convert_to(format('%s %s ', r.relation, r.commit), 'UTF8') || r.contract || r.seal, ''
            ORDER BY r.relation
        ), '')), EXISTS (
            SELECT FROM claim AS c WHERE c.tenant = p_tenant AND c.epoch = p_epoch
                AND c.relation IN ('same_as', 'not_same_as') AND c.position <= p_last
        ), EXISTS (SELECT FROM tombstone AS t WHERE t.tenant = p_tenant), coalesce(bool_or(
            r.relation = p_relation AND position(convert_to('"value_type":"any"', 'UTF8') IN r.contract) = 0
        ), false)
    INTO contracts, has_identity, has_tombstones, is_typed
    FROM relation AS r WHERE r.tenant = p_tenant AND r.epoch = p_epoch AND r.commit <= p_cut;
END
$function$;

-- Those of some relations whose contract takes values of one type alone: a claim of another is reported
-- whenever it begins, so of their keys every claim is read.
CREATE FUNCTION echoplane_typed(
    p_tenant text, p_epoch integer, p_cut bigint, p_relations text[]
) RETURNS text[]
LANGUAGE plpgsql STABLE
AS $function$
BEGIN
    RETURN ARRAY(
        SELECT r.relation FROM relation AS r
        WHERE r.tenant = p_tenant AND r.epoch = p_epoch AND r.commit <= p_cut AND r.relation = ANY (p_relations)
            AND convert_from(r.contract, 'UTF8') NOT LIKE '%"value_type":"any"%'
    );
END
$function$;

-- The newest claims on a key up to a position, a column an array; of states those alone that begin up to an
-- instant, in microseconds, where one is given. `amount` is how many there are, given or not, and
-- (`position`, `ordinal`) where the oldest of all is. In SQL: it becomes a part of what calls it.
CREATE FUNCTION echoplane_newest(
    p_tenant text, p_epoch integer, p_entity text, p_relation text, p_last bigint, p_most integer, p_until bigint
) RETURNS TABLE (
    amount bigint, "position" bigint, ordinal integer, claims bytea[], positions bigint[], ordinals integer[],
    commits bigint[], event_ids text[], stances text[], bodies bytea[], seals bytea[]
)
LANGUAGE sql STABLE
AS $function$
    SELECT count(*), min(c.position), (array_agg(c.ordinal))[count(*)],
        coalesce(array_agg(c.claim_id) FILTER (WHERE c.has_begun), '{}'),
        coalesce(array_agg(c.position) FILTER (WHERE c.has_begun), '{}'),
        coalesce(array_agg(c.ordinal) FILTER (WHERE c.has_begun), '{}'),
        coalesce(array_agg(c.commit) FILTER (WHERE c.has_begun), '{}'),
        coalesce(array_agg(c.event_id) FILTER (WHERE c.has_begun), '{}'),
        coalesce(array_agg(c.stance) FILTER (WHERE c.has_begun), '{}'),
        coalesce(array_agg(c.body) FILTER (WHERE c.has_begun), '{}'),
        coalesce(array_agg(c.seal) FILTER (WHERE c.has_begun), '{}')
    FROM (
        SELECT c.claim_id, c.position, c.ordinal, c.commit, c.event_id, c.stance, c.body, c.seal,
            (c.starts > p_until) IS NOT TRUE AS has_begun
        FROM claim AS c
        WHERE c.tenant = p_tenant AND c.epoch = p_epoch AND c.entity = p_entity AND c.relation = p_relation
            AND c.position <= p_last
        ORDER BY c.position DESC, c.ordinal DESC LIMIT p_most
    ) AS c
$function$;

-- Everything that the answers of some keys at one cut and instant are made from, in one call:
--   stand   a digest of the contracts (`seal`), whether there are claims about who is one with whom
--           (`amount`), and whether anything was erased that left a tombstone (`known_to`)
--   count   how many lines of a key are in a state there, of a key with more than `p_cells` lines there
--   cell    what a line has there; at most `p_cells` a key, those with a value before the others
--   own     the newest claims on the key up to the cut, one more than `p_claims` if there are more; how many
--           (`known_to`), and where the oldest is (`known_from`)
--   acting  where there are more: older ones that act on others, so many that with its own there is
--           one more than `p_claims`, if there are more
--   reach   the newest that act on it from elsewhere, likewise
--   named   claims that its cells name and that are not among its own
-- Claims are one row a key, a column an array: a row each takes longer to send than to find. `claims` are
-- their ids, or those that a cell names. Without an instant there are no cells.
CREATE FUNCTION echoplane_found(
    p_tenant text, p_epoch integer, p_cut bigint, p_at timestamptz, p_entities text[], p_relations text[],
    p_cells integer, p_claims integer
) RETURNS TABLE (
    kind text, key bigint, part text, valid_from timestamptz, valid_to timestamptz, known_from bigint,
    known_to bigint, state text, seal bytea, amount bigint, claims bytea[], positions bigint[],
    ordinals integer[], commits bigint[], event_ids text[], entities text[], relations text[], stances text[],
    bodies bytea[], seals bytea[]
)
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, public, pg_temp SET plan_cache_mode = force_generic_plan
AS $function$
#variable_conflict use_column
DECLARE
    v_folded bigint := (SELECT e.commit FROM epoch AS e WHERE e.tenant = p_tenant AND e.epoch = p_epoch);
    v_last bigint := (SELECT c.first_position + c.event_count - 1 FROM commit AS c
                      WHERE c.tenant = p_tenant AND c.commit = p_cut);
    v_nodes bigint[] := echoplane_nodes(p_cut, v_folded);
    v_stand record := echoplane_stand(p_tenant, p_epoch, p_cut, v_last, NULL);
BEGIN
    RETURN QUERY
    WITH wanted AS MATERIALIZED (
        SELECT u.n, u.entity, u.relation
        FROM unnest(p_entities, p_relations) WITH ORDINALITY AS u (entity, relation, n)
    ), found AS MATERIALIZED (
        SELECT w.n, l.part, c.valid, c.known, c.state, c.claims, c.seal,
            count(*) OVER (PARTITION BY w.n) AS lines
        FROM wanted AS w CROSS JOIN LATERAL (
            SELECT l.line, l.part FROM line AS l
            WHERE l.tenant = p_tenant AND l.epoch = p_epoch AND l.entity = w.entity
                AND l.relation = w.relation AND p_at IS NOT NULL
            OFFSET 0
        ) AS l CROSS JOIN LATERAL (
            SELECT c.valid, c.known, c.state, c.claims, c.seal
            FROM unnest(v_nodes) AS u (node) CROSS JOIN LATERAL (
                SELECT c.valid, c.known, c.state, c.claims, c.seal FROM cell AS c
                WHERE c.tenant = p_tenant AND c.line = l.line AND c.node = u.node AND c.starts <= p_at
                ORDER BY c.starts DESC LIMIT 1
            ) AS c
            WHERE c.valid @> p_at AND c.known @> p_cut
            LIMIT 1
        ) AS c
    ), shown AS MATERIALIZED (
        SELECT f.* FROM found AS f WHERE f.lines <= p_cells
        UNION ALL
        SELECT f.n, f.part, f.valid, f.known, f.state, f.claims, f.seal, f.lines FROM (
            SELECT f.*, row_number() OVER (
                PARTITION BY f.n ORDER BY f.state IN ('value', 'conflict') DESC, f.part
            ) AS place FROM found AS f WHERE f.lines > p_cells
        ) AS f WHERE f.place <= p_cells
    ), own AS MATERIALIZED (
        SELECT w.n, w.entity, w.relation, c.*
        FROM wanted AS w CROSS JOIN LATERAL
            echoplane_newest(p_tenant, p_epoch, w.entity, w.relation, v_last, p_claims + 1, NULL) AS c
        WHERE c.amount > 0
    ), more AS MATERIALIZED (
        SELECT 'acting' AS kind, o.n, c.claim_id
        FROM own AS o CROSS JOIN LATERAL (
            SELECT c.claim_id FROM claim AS c
            WHERE c.tenant = p_tenant AND c.epoch = p_epoch AND c.entity = o.entity
                AND c.relation = o.relation
                AND (c.position, c.ordinal) < (o.position, o.ordinal)
                AND c.stance IN ('correct', 'retract', 'settle', 'dispute')
            ORDER BY c.position DESC, c.ordinal DESC LIMIT greatest(p_claims + 1 - (
                SELECT count(*) FROM unnest(o.stances) AS u (stance)
                WHERE u.stance IN ('correct', 'retract', 'settle', 'dispute')
            ), 0)
        ) AS c
        WHERE o.amount > p_claims
        UNION ALL
        SELECT 'reach', w.n, r.claim_id
        FROM wanted AS w CROSS JOIN LATERAL (
            SELECT r.claim_id FROM reach AS r
            WHERE r.tenant = p_tenant AND r.epoch = p_epoch AND r.entity = w.entity
                AND r.relation = w.relation AND r.position <= v_last AND r.acts
            ORDER BY r.position DESC LIMIT p_claims + 1
        ) AS r
        UNION ALL
        SELECT DISTINCT 'named', s.n, u.claim_id
        FROM shown AS s LEFT JOIN own AS o ON o.n = s.n CROSS JOIN LATERAL unnest(s.claims) AS u (claim_id)
        WHERE o.n IS NULL OR u.claim_id <> ALL (o.claims)
    )
    SELECT 'stand', NULL::bigint, NULL::text, NULL::timestamptz, NULL::timestamptz, NULL::bigint,
        v_stand.has_tombstones::integer::bigint, NULL::text, v_stand.contracts,
        v_stand.has_identity::integer::bigint, NULL::bytea[], NULL::bigint[], NULL::integer[], NULL::bigint[],
        NULL::text[], NULL::text[], NULL::text[], NULL::text[], NULL::bytea[], NULL::bytea[]
    UNION ALL
    SELECT 'count', f.n, NULL, NULL, NULL, NULL, NULL, f.state, NULL, count(*), NULL, NULL, NULL, NULL, NULL,
        NULL, NULL, NULL, NULL, NULL
    FROM found AS f WHERE f.lines > p_cells GROUP BY f.n, f.state
    UNION ALL
    SELECT 'cell', f.n, f.part, lower(f.valid), upper(f.valid), lower(f.known), upper(f.known), f.state,
        f.seal, NULL, f.claims, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
    FROM shown AS f
    UNION ALL
    SELECT 'own', o.n, NULL, NULL, NULL, o.position, o.amount, NULL, NULL, NULL, o.claims, o.positions, o.ordinals,
        o.commits, o.event_ids, NULL, NULL, o.stances, o.bodies, o.seals
    FROM own AS o
    UNION ALL
    SELECT m.kind, m.n, NULL, NULL, NULL, NULL, NULL, NULL, NULL, count(*), array_agg(c.claim_id),
        array_agg(c.position), array_agg(c.ordinal), array_agg(c.commit), array_agg(c.event_id),
        array_agg(c.entity), array_agg(c.relation), array_agg(c.stance), array_agg(c.body), array_agg(c.seal)
    FROM more AS m CROSS JOIN LATERAL (
        SELECT * FROM claim AS c
        WHERE c.tenant = p_tenant AND c.epoch = p_epoch AND c.claim_id = m.claim_id OFFSET 0
    ) AS c
    GROUP BY m.kind, m.n;
END
$function$;

-- What the answers of those keys are made from whose claims are all states that replace each other, and on
-- which nothing acts, where they have a value at the instant: most keys. A row for each piece of them, from
-- which number to which, sent as soon as it is found; in SQL, and nothing set: it becomes a part of what calls
-- it, and is planned once.
--   contracts …    as `echoplane_stand` has it
--   keys           which of those asked for they are, by number; of all others nothing is here
--   starts, ends   of the cell of each, as `timestamptz_send` writes them, one after the other; then when it is
--                  known, the claim that it names, and its seal
--   own            of each of the newest claims up to the cut, one more than `p_claims` if there are more, by
--                  number whose it is; then its columns; ids and seals one after the other, 32 bytes each.
--                  Without those that begin after the instant where values are of any type
--   later          of each of those left out whose it is, and its position
CREATE FUNCTION echoplane_plain(
    p_tenant text, p_epoch integer, p_cut bigint, p_at timestamptz, p_entities text[], p_relations text[],
    p_first integer[], p_last integer[], p_claims integer
) RETURNS TABLE (
    contracts bytea, has_identity boolean, has_tombstones boolean, keys bigint[], starts bytea, ends bytea,
    known_from bigint[], known_to bigint[], named bytea[], cell_seals bytea, own bigint[], claims bytea,
    positions bigint[], ordinals integer[], commits bigint[], event_ids text[], stances text[], bodies bytea[],
    seals bytea, later bigint[], later_positions bigint[]
)
LANGUAGE sql STABLE
AS $function$
    WITH asked AS MATERIALIZED (
        SELECT p_tenant AS tenant, p_epoch AS epoch, p_cut AS cut, p_at AS at, p_entities AS entities,
            p_relations AS relations, p_first AS firsts, p_last AS lasts, p_claims AS most
    ), pinned AS MATERIALIZED (
        SELECT a.*, c.first_position + c.event_count - 1 AS last, echoplane_nodes(a.cut, e.commit) AS nodes,
            (extract(epoch FROM a.at) * 1000000)::bigint AS until,
            echoplane_typed(a.tenant, a.epoch, a.cut, a.relations) AS typed
        FROM asked AS a
        LEFT JOIN epoch AS e ON e.tenant = a.tenant AND e.epoch = a.epoch
        LEFT JOIN commit AS c ON c.tenant = a.tenant AND c.commit = a.cut
    )
    SELECT st.contracts, st.has_identity, st.has_tombstones, f.*
    FROM pinned AS p CROSS JOIN LATERAL (
        SELECT * FROM echoplane_stand(p.tenant, p.epoch, p.cut, p.last, NULL) OFFSET 0
    ) AS st CROSS JOIN LATERAL unnest(p.firsts, p.lasts) AS piece (first, last)
    CROSS JOIN LATERAL (
        WITH standing AS MATERIALIZED (
            SELECT piece.first - 1 + w.n AS n, w.entity, w.relation, c.valid, c.known, c.claims[1] AS named, c.seal,
                CASE WHEN w.relation <> ALL (p.typed) THEN p.until END AS until
            FROM unnest(p.entities[piece.first:piece.last], p.relations[piece.first:piece.last])
                WITH ORDINALITY AS w (entity, relation, n)
            CROSS JOIN LATERAL (
                SELECT l.line, l.tail FROM line AS l
                WHERE l.tenant = p.tenant AND l.epoch = p.epoch AND l.entity = w.entity
                    AND l.relation = w.relation AND l.part = ''
                OFFSET 0
            ) AS l CROSS JOIN LATERAL (
                SELECT c.valid, c.known, c.state, c.claims, c.seal
                FROM unnest(p.nodes) AS u (node) CROSS JOIN LATERAL (
                    SELECT c.valid, c.known, c.state, c.claims, c.seal FROM cell AS c
                    WHERE c.tenant = p.tenant AND c.line = l.line AND c.node = u.node AND c.starts <= p.at
                    ORDER BY c.starts DESC LIMIT 1
                ) AS c
                WHERE c.valid @> p.at AND c.known @> p.cut
                LIMIT 1
            ) AS c
            WHERE substr(l.tail, octet_length(l.tail) - 5) = '\x2c747275655d' AND c.state = 'value'
                AND cardinality(c.claims) = 1
                AND NOT EXISTS (
                    SELECT FROM claim AS c
                    WHERE c.tenant = p.tenant AND c.epoch = p.epoch AND c.entity = w.entity
                        AND c.relation = w.relation AND c.position <= p.last
                        AND c.stance IN ('correct', 'retract', 'settle', 'dispute') OFFSET 0
                ) AND NOT EXISTS (
                    SELECT FROM reach AS r
                    WHERE r.tenant = p.tenant AND r.epoch = p.epoch AND r.entity = w.entity
                        AND r.relation = w.relation AND r.position <= p.last AND r.acts OFFSET 0
                )
        )
        SELECT s.*, o.*
        FROM (
            SELECT array_agg(s.n), string_agg(timestamptz_send(coalesce(lower(s.valid), '-infinity')), ''),
                string_agg(timestamptz_send(coalesce(upper(s.valid), 'infinity')), ''),
                array_agg(lower(s.known)), array_agg(upper(s.known)), array_agg(s.named), string_agg(s.seal, '')
            FROM standing AS s
        ) AS s, (
            SELECT array_agg(s.n) FILTER (WHERE c.has_begun),
                string_agg(c.claim_id, '') FILTER (WHERE c.has_begun),
                array_agg(c.position) FILTER (WHERE c.has_begun),
                array_agg(c.ordinal) FILTER (WHERE c.has_begun),
                array_agg(c.commit) FILTER (WHERE c.has_begun),
                array_agg(c.event_id) FILTER (WHERE c.has_begun),
                array_agg(c.stance) FILTER (WHERE c.has_begun),
                array_agg(c.body) FILTER (WHERE c.has_begun),
                string_agg(c.seal, '') FILTER (WHERE c.has_begun),
                array_agg(s.n) FILTER (WHERE NOT c.has_begun),
                array_agg(c.position) FILTER (WHERE NOT c.has_begun)
            FROM standing AS s CROSS JOIN LATERAL (
                SELECT c.claim_id, c.position, c.ordinal, c.commit, c.event_id, c.stance, c.body, c.seal,
                    (c.starts > s.until) IS NOT TRUE AS has_begun
                FROM claim AS c
                WHERE c.tenant = p.tenant AND c.epoch = p.epoch AND c.entity = s.entity
                    AND c.relation = s.relation AND c.position <= p.last
                ORDER BY c.position DESC, c.ordinal DESC LIMIT p.most + 1
            ) AS c
        ) AS o
    ) AS f
$function$;

-- What most reads need, in one call: the view that is asked for, and what a key has at it whose claims are
-- all states that replace each other, and on which nothing acts.
--   view   the `epoch` and its `state`; `known_from` its newest commit, `known_to` the cut, `valid_from` what
--          "now" is, `seal` a digest of the contracts there. None of no tenant
--   plain  what such a key has at the instant; `key` is 1 where a state with a coarse start may hold already
--   own    the newest claims on such a key up to the cut, one more than `p_claims` if there are more, without
--          those that begin after the instant where values are of any type; how many (`known_to`), and where
--          the oldest is (`known_from`)
--   named  the first claim that it has there, where it is not among those
-- What is not given is the newest. Of an epoch that is not there, or not so far, there is the view alone.
-- In few steps: to begin each takes longer than all that it finds. In one, it would be made ready for longer.
CREATE FUNCTION echoplane_read(
    p_tenant text, p_epoch integer, p_commit bigint, p_known_at timestamptz, p_at timestamptz,
    p_now timestamptz, p_entity text, p_relation text, p_claims integer
) RETURNS TABLE (
    kind text, key bigint, part text, valid_from timestamptz, valid_to timestamptz, known_from bigint,
    known_to bigint, state text, seal bytea, epoch integer, claims bytea[], positions bigint[],
    ordinals integer[], commits bigint[], event_ids text[], entities text[], relations text[], stances text[],
    bodies bytea[], seals bytea[]
)
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, public, pg_temp SET plan_cache_mode = force_generic_plan
AS $function$
#variable_conflict use_column
DECLARE
    v_folded bigint;
    v_cut bigint;
    v_last bigint;
    v_at timestamptz;
    v_known timestamptz;
    v_stand record;
    v_nodes bigint[];
    v_first bytea;
    v_until bigint;
BEGIN
    PERFORM set_config('echoplane.tenant', p_tenant, true);
    SELECT h.recorded_at, e.epoch, e.commit, e.state INTO valid_from, epoch, v_folded, state
    FROM head AS h LEFT JOIN epoch AS e ON e.tenant = p_tenant
        AND CASE WHEN p_epoch IS NULL THEN e.state = 'serving' ELSE e.epoch = p_epoch END
    WHERE h.tenant = p_tenant;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    -- A clock that stepped back must not hide what was just written.
    valid_from := greatest(valid_from, p_now);
    v_at := coalesce(p_at, valid_from);
    v_known := coalesce(p_known_at, valid_from);
    -- Recorded times ascend with the commits; they are what an early one is found by.
    SELECT c.commit, c.first_position + c.event_count - 1 INTO v_cut, v_last FROM commit AS c
    WHERE c.tenant = p_tenant AND c.recorded_at <= v_known
    ORDER BY c.recorded_at DESC LIMIT 1;
    IF v_cut > coalesce(p_commit, v_folded) THEN
        v_cut := coalesce(p_commit, v_folded);
        SELECT c.first_position + c.event_count - 1 INTO v_last FROM commit AS c
        WHERE c.tenant = p_tenant AND c.commit = v_cut;
    END IF;
    kind := 'view';
    known_from := v_folded;
    known_to := coalesce(v_cut, 0);
    v_stand := echoplane_stand(p_tenant, epoch, known_to, v_last, p_relation);
    seal := v_stand.contracts;
    RETURN NEXT;
    IF p_entity IS NULL OR v_stand.has_identity OR v_stand.has_tombstones OR v_last IS NULL
        OR NOT coalesce(p_commit, 0) <= v_folded
    THEN
        RETURN;
    END IF;
    p_epoch := epoch;
    v_nodes := echoplane_nodes(v_cut, v_folded);
    v_until := extract(epoch FROM v_at) * 1000000;
    -- The first of them by time: whether there is any would be looked for by walking through the table, where
    -- nothing is known yet of how few there are.
    SELECT 'plain', coalesce((
        SELECT 1 FROM claim AS c WHERE c.tenant = p_tenant AND c.epoch = p_epoch AND c.entity = p_entity
            AND c.relation = p_relation AND c.unsure_to > v_until AND c.unsure_from <= v_until
            AND c.position <= v_last
        ORDER BY c.unsure_to LIMIT 1
    ), 0), '', lower(c.valid), upper(c.valid), lower(c.known), upper(c.known), c.state, c.seal, c.claims
    INTO kind, key, part, valid_from, valid_to, known_from, known_to, state, seal, claims
    FROM (
        SELECT l.line FROM line AS l
        WHERE l.tenant = p_tenant AND l.epoch = p_epoch AND l.entity = p_entity AND l.relation = p_relation
            AND l.part = '' AND substr(l.tail, octet_length(l.tail) - 5) = '\x2c747275655d'
            AND NOT EXISTS (
                SELECT FROM claim AS c
                WHERE c.tenant = p_tenant AND c.epoch = p_epoch AND c.entity = p_entity
                    AND c.relation = p_relation AND c.position <= v_last
                    AND c.stance IN ('correct', 'retract', 'settle', 'dispute') OFFSET 0
            ) AND NOT EXISTS (
                SELECT FROM reach AS r
                WHERE r.tenant = p_tenant AND r.epoch = p_epoch AND r.entity = p_entity
                    AND r.relation = p_relation AND r.position <= v_last AND r.acts OFFSET 0
            )
        OFFSET 0
    ) AS l CROSS JOIN unnest(v_nodes) AS u (node) CROSS JOIN LATERAL (
        SELECT c.valid, c.known, c.state, c.claims, c.seal FROM cell AS c
        WHERE c.tenant = p_tenant AND c.line = l.line AND c.node = u.node AND c.starts <= v_at
        ORDER BY c.starts DESC LIMIT 1
    ) AS c
    WHERE c.valid @> v_at AND c.known @> v_cut
    LIMIT 1;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    v_first := claims[1];
    RETURN NEXT;
    IF v_stand.is_typed THEN
        v_until := NULL;
    END IF;
    SELECT 'own', c.position, c.amount, c.claims, c.positions, c.ordinals, c.commits, c.event_ids, c.stances,
        c.bodies, c.seals
    INTO kind, known_from, known_to, claims, positions, ordinals, commits, event_ids, stances, bodies, seals
    FROM echoplane_newest(
        p_tenant, p_epoch, p_entity, p_relation, v_last, p_claims + 1, v_until
    ) AS c;
    IF known_to > 0 THEN
        RETURN NEXT;
        IF v_first <> ALL (claims) THEN
            RETURN QUERY SELECT 'named', NULL::bigint, NULL::text, NULL::timestamptz, NULL::timestamptz,
                NULL::bigint, NULL::bigint, NULL::text, NULL::bytea, p_epoch, ARRAY[c.claim_id],
                ARRAY[c.position], ARRAY[c.ordinal], ARRAY[c.commit], ARRAY[c.event_id], ARRAY[c.entity],
                ARRAY[c.relation], ARRAY[c.stance], ARRAY[c.body], ARRAY[c.seal]
            FROM claim AS c WHERE c.tenant = p_tenant AND c.epoch = p_epoch AND c.claim_id = v_first;
        END IF;
    END IF;
END
$function$;

REVOKE ALL ON FUNCTION
    echoplane_nodes, echoplane_stand, echoplane_typed, echoplane_newest, echoplane_found, echoplane_plain,
    echoplane_read FROM PUBLIC;
GRANT EXECUTE ON FUNCTION
    echoplane_nodes, echoplane_stand, echoplane_typed, echoplane_newest, echoplane_found, echoplane_plain,
    echoplane_read TO echoplane_plane;
