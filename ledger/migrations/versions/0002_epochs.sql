-- A dropped epoch keeps its number and nothing else.
ALTER TABLE epoch DROP CONSTRAINT epoch_state;
ALTER TABLE epoch ADD CONSTRAINT epoch_state
    CHECK (state IN ('serving', 'building', 'retired', 'dropped'));
-- One is built at a time: of two, the later one would make the earlier one's work vain.
CREATE UNIQUE INDEX epoch_building_once ON epoch (tenant) WHERE state = 'building';

-- The contracts with which an epoch begins are read from the log, by kind.
CREATE INDEX event_relation ON event (tenant, position) WHERE kind = 'relation';

-- Deletes some rows of a dropped epoch and says how many; 0 once none is left. The plane's role may
-- delete no claim and no cell itself, and this takes no other epoch.
CREATE FUNCTION echoplane_drop_rows(p_tenant text, p_epoch integer, p_rows integer) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $function$
DECLARE
    v_lines bigint[];
    v_table text;
    v_count bigint;
    v_more bigint;
BEGIN
    PERFORM set_config('echoplane.tenant', p_tenant, true);
    IF NOT EXISTS (
        SELECT FROM epoch AS e WHERE e.tenant = p_tenant AND e.epoch = p_epoch AND e.state = 'dropped'
    ) THEN
        RAISE integrity_constraint_violation USING
            MESSAGE = 'only rows of a dropped epoch are deleted', CONSTRAINT = 'epoch_dropped', TABLE = 'epoch';
    END IF;

    -- Row by row by its place: no plan depends on statistics, which know nothing of an epoch. Lines whose
    -- cells are gone go in the same step, or each further one would walk over them again.
    v_lines := ARRAY(SELECT l.line FROM line AS l WHERE l.tenant = p_tenant AND l.epoch = p_epoch LIMIT p_rows);
    DELETE FROM cell WHERE ctid = ANY (ARRAY(
        SELECT c.ctid FROM unnest(v_lines) AS u (line) CROSS JOIN LATERAL (
            SELECT d.ctid FROM cell AS d WHERE d.tenant = p_tenant AND d.line = u.line OFFSET 0
        ) AS c LIMIT p_rows
    ));
    GET DIAGNOSTICS v_count = ROW_COUNT;
    DELETE FROM line WHERE ctid = ANY (ARRAY(
        SELECT l.ctid FROM line AS l WHERE l.tenant = p_tenant AND l.line = ANY (v_lines)
            AND NOT EXISTS (SELECT FROM cell AS c WHERE c.tenant = p_tenant AND c.line = l.line OFFSET 0)
    ));
    GET DIAGNOSTICS v_more = ROW_COUNT;
    v_count := v_count + v_more;
    IF v_count > 0 THEN
        RETURN v_count;
    END IF;

    DELETE FROM reach WHERE ctid = ANY (ARRAY(
        SELECT r.ctid FROM reach AS r WHERE r.tenant = p_tenant AND r.epoch = p_epoch LIMIT p_rows
    ));
    GET DIAGNOSTICS v_count = ROW_COUNT;
    IF v_count > 0 THEN
        RETURN v_count;
    END IF;

    DELETE FROM claim WHERE ctid = ANY (ARRAY(
        SELECT c.ctid FROM claim AS c WHERE c.tenant = p_tenant AND c.epoch = p_epoch LIMIT p_rows
    ));
    GET DIAGNOSTICS v_count = ROW_COUNT;
    IF v_count > 0 THEN
        RETURN v_count;
    END IF;

    -- Few: what is left of them goes at once.
    FOREACH v_table IN ARRAY ARRAY['tombstone_reach', 'veiled_name', 'relation', 'dead_letter'] LOOP
        EXECUTE format('DELETE FROM %I WHERE tenant = $1 AND epoch = $2', v_table) USING p_tenant, p_epoch;
        GET DIAGNOSTICS v_more = ROW_COUNT;
        v_count := v_count + v_more;
    END LOOP;
    RETURN v_count;
END
$function$;

-- To be called before: a claim that goes is looked up once more for its foreign key, by a plan that only
-- statistics tell how few claims have one id. Without them each is looked for in its whole epoch.
CREATE FUNCTION echoplane_drop_prepared() RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $function$
BEGIN
    ANALYZE claim, reach, line, cell;
END
$function$;

REVOKE ALL ON FUNCTION echoplane_drop_rows, echoplane_drop_prepared FROM PUBLIC;
GRANT EXECUTE ON FUNCTION echoplane_drop_rows, echoplane_drop_prepared TO echoplane_plane;
