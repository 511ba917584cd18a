-- Tenants: who made them, what they may use, how long they keep it, and what is left of one that was deleted.
ALTER TABLE tenant ADD COLUMN created_by TEXT NOT NULL DEFAULT '';
ALTER TABLE tenant ALTER COLUMN created_by DROP DEFAULT;

-- None for a tenant about which nothing was decided. Each change is a `decision` of the tenant's log.
CREATE TABLE tenant_policy (
    tenant TEXT NOT NULL,
    suspended BOOLEAN NOT NULL,
    events_max BIGINT,
    bytes_max BIGINT,
    events_per_minute INTEGER,
    retention_days INTEGER,
    -- Events that may be appended at that time; below nothing after a large append, until that is made up for.
    allowance DOUBLE PRECISION NOT NULL,
    allowance_at TIMESTAMP WITH TIME ZONE NOT NULL,
    PRIMARY KEY (tenant),
    CONSTRAINT policy_of_tenant FOREIGN KEY (tenant) REFERENCES tenant (tenant),
    CONSTRAINT policy_is_positive CHECK (
        events_max >= 0 AND bytes_max >= 0 AND events_per_minute > 0 AND retention_days > 0
    )
);

-- What stays of a tenant that was deleted, so that nobody gets its name: who has its keys or its tokens
-- would meet another one's memory.
CREATE TABLE deleted_tenant (
    tenant TEXT NOT NULL,
    deleted_at TIMESTAMP WITH TIME ZONE NOT NULL,
    deleted_by TEXT NOT NULL,
    reason TEXT NOT NULL,
    commits BIGINT NOT NULL,
    events BIGINT NOT NULL,
    PRIMARY KEY (tenant)
);

DO $do$
DECLARE
    v_table text;
BEGIN
    FOREACH v_table IN ARRAY ARRAY['tenant_policy', 'deleted_tenant'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', v_table);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', v_table);
        EXECUTE format(
            'CREATE POLICY one_tenant ON %I USING (tenant = current_setting(''echoplane.tenant'', true)) '
            'WITH CHECK (tenant = current_setting(''echoplane.tenant'', true))', v_table);
        EXECUTE format('CREATE POLICY every_tenant ON %I FOR SELECT TO echoplane_relay USING (true)', v_table);
        EXECUTE format('REVOKE ALL ON %I FROM PUBLIC', v_table);
        EXECUTE format('GRANT SELECT ON %I TO echoplane_plane', v_table);
    END LOOP;
END
$do$;
GRANT INSERT, UPDATE (suspended, events_max, bytes_max, events_per_minute, retention_days, allowance, allowance_at)
    ON tenant_policy TO echoplane_plane;
GRANT SELECT (created_by) ON tenant TO echoplane_relay;
GRANT SELECT ON tenant_policy TO echoplane_relay;
GRANT SELECT (tenant, deleted_at, deleted_by, commits, events) ON deleted_tenant TO echoplane_relay;

DROP FUNCTION echoplane_create_tenant(text, bytea, timestamptz);
CREATE FUNCTION echoplane_create_tenant(
    p_tenant text, p_wrapped_keys bytea, p_created_at timestamptz, p_created_by text
) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $function$
BEGIN
    PERFORM set_config('echoplane.tenant', p_tenant, true);
    IF EXISTS (SELECT FROM deleted_tenant AS d WHERE d.tenant = p_tenant) THEN
        RAISE integrity_constraint_violation USING
            MESSAGE = 'a deleted tenant had this name', CONSTRAINT = 'tenant_taken', TABLE = 'tenant';
    END IF;
    INSERT INTO tenant (tenant, created_at, created_by, wrapped_keys)
    VALUES (p_tenant, p_created_at, p_created_by, p_wrapped_keys)
    ON CONFLICT (tenant) DO NOTHING;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    -- Commit 0 is the empty log: before every clock, with a hash of zeros.
    INSERT INTO head (tenant, commit, position, recorded_at, hash, live, bytes)
    VALUES (p_tenant, 0, 0, '1970-01-01T00:00:00Z', decode(repeat('00', 32), 'hex'), false, 0);
    INSERT INTO epoch (tenant, epoch, commit, position, projector_version, state)
    VALUES (p_tenant, 1, 0, 0, '', 'serving');
    INSERT INTO trail_head (tenant, number) VALUES (p_tenant, 0);
    RETURN true;
END
$function$;

-- --- what is appended -------------------------------------------------------------------------------------

-- Asked once for all events of a statement: whether they are of commits of the log (a foreign key asks for
-- each event by itself), and whether the tenant may have them. Decisions and erasures always pass: by them
-- a tenant is brought back within its bounds.
ALTER TABLE event DROP CONSTRAINT event_of_commit;
CREATE FUNCTION echoplane_events_arrive() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, public, pg_temp
AS $function$
DECLARE
    v_policy tenant_policy;
    v_more record;
    v_now timestamptz := clock_timestamp();
    v_bytes bigint;
    v_last_allowance double precision;
    v_quota text;
BEGIN
    IF EXISTS (
        SELECT FROM (SELECT DISTINCT tenant, commit FROM fresh) AS f WHERE NOT EXISTS (
            SELECT FROM commit AS c WHERE c.tenant = f.tenant AND c.commit = f.commit OFFSET 0
        )
    ) THEN
        RAISE foreign_key_violation USING
            MESSAGE = 'an event is of a commit of its tenant', CONSTRAINT = 'event_of_commit', TABLE = 'event';
    END IF;
    SELECT * INTO v_policy FROM tenant_policy AS p WHERE p.tenant = current_setting('echoplane.tenant', true);
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;

    SELECT max(f.position) AS events, sum(octet_length(f.header) + octet_length(f.ciphertext))::bigint AS bytes,
        count(*) FILTER (WHERE f.kind NOT IN ('decision', 'erasure')) AS bound,
        max(f.commit) FILTER (WHERE f.kind NOT IN ('decision', 'erasure')) AS last_bound
    INTO v_more FROM fresh AS f;
    v_bytes := v_more.bytes + (SELECT h.bytes FROM head AS h WHERE h.tenant = v_policy.tenant);
    IF v_policy.events_per_minute IS NOT NULL THEN
        -- What was not used is kept for a minute.
        v_policy.allowance := least(
            v_policy.events_per_minute,
            v_policy.allowance + v_policy.events_per_minute
                * greatest(extract(epoch FROM v_now - v_policy.allowance_at), 0) / 60
        );
    END IF;
    IF v_more.bound > 0 THEN
        IF v_policy.suspended THEN
            RAISE integrity_constraint_violation USING
                MESSAGE = 'the tenant is suspended', CONSTRAINT = 'tenant_suspended', TABLE = 'tenant_policy';
        END IF;
        v_quota := CASE
            WHEN v_more.events > v_policy.events_max THEN
                format('events %s %s', v_policy.events_max, v_more.events)
            WHEN v_bytes > v_policy.bytes_max THEN format('bytes %s %s', v_policy.bytes_max, v_bytes)
        END;
        IF v_quota IS NOT NULL THEN
            RAISE integrity_constraint_violation USING
                MESSAGE = 'the tenant has used its quota', DETAIL = v_quota, CONSTRAINT = 'tenant_quota',
                TABLE = 'tenant_policy';
        END IF;
        -- Any size passes while an event may: one that is larger than a minute's worth could never. Of several
        -- appends the last must still find that; else each comes again by itself.
        v_last_allowance := v_policy.allowance - (
            SELECT count(*) FROM fresh AS f
            WHERE f.kind NOT IN ('decision', 'erasure') AND f.commit < v_more.last_bound
        );
        IF v_policy.events_per_minute IS NOT NULL AND v_last_allowance < 1 THEN
            RAISE integrity_constraint_violation USING
                MESSAGE = 'the tenant appends too fast', CONSTRAINT = 'tenant_rate', TABLE = 'tenant_policy',
                DETAIL = format(
                    '%s %s', v_policy.events_per_minute, 60 * (1 - v_last_allowance) / v_policy.events_per_minute
                );
        END IF;
    END IF;
    UPDATE tenant_policy AS p
    SET allowance = v_policy.allowance - v_more.bound, allowance_at = v_now
    WHERE p.tenant = v_policy.tenant;
    RETURN NULL;
END
$function$;
CREATE TRIGGER event_arrives AFTER INSERT ON event REFERENCING NEW TABLE AS fresh
FOR EACH STATEMENT EXECUTE FUNCTION echoplane_events_arrive();

-- --- deleting ---------------------------------------------------------------------------------------------

-- Of an erasure that goes it is looked for what it erased; and what triggers hold to a commit stays with it.
CREATE INDEX erased_by_erasure ON erased (tenant, erasure_id);
CREATE TRIGGER commit_is_named AFTER DELETE ON commit FOR EACH ROW EXECUTE FUNCTION echoplane_is_named();
CREATE TRIGGER commit_is_renamed AFTER UPDATE ON commit FOR EACH ROW
WHEN ((OLD.tenant, OLD.commit) IS DISTINCT FROM (NEW.tenant, NEW.commit))
EXECUTE FUNCTION echoplane_is_named();

-- Ends a tenant, whoever is at work in it: its keys are destroyed, nothing can be appended, folded or asked
-- any more. Its rows go afterwards. False where there is no such tenant, or no more.
CREATE FUNCTION echoplane_end_tenant(p_tenant text, p_at timestamptz, p_by text, p_reason text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $function$
DECLARE
    v_head head;
BEGIN
    PERFORM set_config('echoplane.tenant', p_tenant, true);
    SELECT * INTO v_head FROM head AS h WHERE h.tenant = p_tenant FOR UPDATE;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    PERFORM FROM epoch AS e WHERE e.tenant = p_tenant ORDER BY e.epoch DESC FOR UPDATE;
    PERFORM FROM trail_head AS t WHERE t.tenant = p_tenant FOR UPDATE;
    INSERT INTO deleted_tenant (tenant, deleted_at, deleted_by, reason, commits, events)
    VALUES (p_tenant, p_at, p_by, p_reason, v_head.commit, v_head.position);
    UPDATE tenant AS t SET wrapped_keys = ''::bytea WHERE t.tenant = p_tenant;
    UPDATE epoch AS e SET state = 'dropped' WHERE e.tenant = p_tenant;
    DELETE FROM token AS t WHERE t.tenant = p_tenant;
    DELETE FROM outbox AS o WHERE o.tenant = p_tenant;
    DELETE FROM trail_head AS t WHERE t.tenant = p_tenant;
    DELETE FROM head AS h WHERE h.tenant = p_tenant;
    RETURN true;
END
$function$;

-- Deletes some rows of one table of a tenant that has ended, and says how many.
CREATE FUNCTION echoplane_delete_rows(p_tenant text, p_table text, p_rows integer) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $function$
DECLARE
    v_count bigint;
BEGIN
    PERFORM set_config('echoplane.tenant', p_tenant, true);
    IF p_table = 'deleted_tenant'
        OR NOT EXISTS (SELECT FROM deleted_tenant AS d WHERE d.tenant = p_tenant)
    THEN
        RAISE integrity_constraint_violation USING
            MESSAGE = 'only rows of a tenant that has ended are deleted', CONSTRAINT = 'tenant_ended',
            TABLE = 'tenant';
    END IF;
    EXECUTE format(
        'DELETE FROM public.%1$I WHERE ctid = ANY (ARRAY('
        'SELECT t.ctid FROM public.%1$I AS t WHERE t.tenant = $1 LIMIT $2))', p_table
    ) USING p_tenant, p_rows;
    GET DIAGNOSTICS v_count = ROW_COUNT;
    RETURN v_count;
END
$function$;

-- --- restoring --------------------------------------------------------------------------------------------

-- Makes a tenant that was exported, in the transaction that fills it.
CREATE FUNCTION echoplane_restore_tenant(
    p_tenant text, p_wrapped_keys bytea, p_created_at timestamptz, p_created_by text
) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $function$
BEGIN
    IF NOT pg_has_role(session_user, 'echoplane_backfill', 'MEMBER') THEN
        RAISE insufficient_privilege USING MESSAGE = 'only members of echoplane_backfill may restore a tenant';
    END IF;
    PERFORM set_config('echoplane.tenant', p_tenant, true);
    IF NOT EXISTS (SELECT FROM deleted_tenant AS d WHERE d.tenant = p_tenant) THEN
        INSERT INTO tenant (tenant, created_at, created_by, wrapped_keys)
        VALUES (p_tenant, p_created_at, p_created_by, p_wrapped_keys) ON CONFLICT (tenant) DO NOTHING;
        IF FOUND THEN
            RETURN;
        END IF;
    END IF;
    RAISE integrity_constraint_violation USING
        MESSAGE = 'a tenant has this name, or had it', CONSTRAINT = 'tenant_taken', TABLE = 'tenant';
END
$function$;

-- Fills one table of a tenant that this very transaction made. Rows are JSON objects without the tenant.
-- Of its keys it is asked whose they are, whatever whoever restores has set.
CREATE FUNCTION echoplane_restore_rows(p_tenant text, p_table text, p_columns text[], p_rows json)
RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $function$
DECLARE
    v_columns text := (SELECT string_agg(quote_ident(u.name), ', ' ORDER BY u.n)
                       FROM unnest(p_columns) WITH ORDINALITY AS u (name, n));
    v_count bigint;
BEGIN
    PERFORM set_config('echoplane.tenant', p_tenant, true);
    IF NOT pg_has_role(session_user, 'echoplane_backfill', 'MEMBER') OR NOT EXISTS (
        SELECT FROM tenant AS t WHERE t.tenant = p_tenant AND t.xmin = pg_current_xact_id()::xid
    ) THEN
        RAISE insufficient_privilege USING
            MESSAGE = 'only members of echoplane_backfill may restore a tenant, in the transaction that makes it';
    END IF;
    PERFORM set_config('echoplane.appending', 'off', true);
    IF p_table = 'cell' THEN
        -- Lines have other numbers here: a cell is on the line of its key.
        INSERT INTO cell (tenant, line, valid, known, state, claims, seal)
        SELECT p_tenant, l.line, r.valid, r.known, r.state, r.claims, r.seal
        FROM json_to_recordset(p_rows) AS r (
            epoch integer, entity text, relation text, part text, valid tstzrange, known int8range, state text,
            claims bytea[], seal bytea
        ) CROSS JOIN LATERAL (
            SELECT l.line FROM line AS l WHERE l.tenant = p_tenant AND l.epoch = r.epoch
                AND l.entity = r.entity AND l.relation = r.relation AND l.part = r.part OFFSET 0
        ) AS l;
    ELSE
        EXECUTE format(
            'INSERT INTO public.%1$I (tenant, %2$s) SELECT $1, %2$s '
            'FROM json_populate_recordset(NULL::public.%1$I, $2)', p_table, v_columns
        ) USING p_tenant, p_rows;
    END IF;
    GET DIAGNOSTICS v_count = ROW_COUNT;
    RETURN v_count;
END
$function$;

REVOKE ALL ON FUNCTION echoplane_create_tenant, echoplane_events_arrive, echoplane_end_tenant,
    echoplane_delete_rows, echoplane_restore_tenant, echoplane_restore_rows FROM PUBLIC;
GRANT EXECUTE ON FUNCTION echoplane_create_tenant, echoplane_end_tenant, echoplane_delete_rows
    TO echoplane_plane;
-- Who may state when something was known may bring in what was known elsewhere; nobody else.
GRANT EXECUTE ON FUNCTION echoplane_restore_tenant, echoplane_restore_rows TO echoplane_backfill;
