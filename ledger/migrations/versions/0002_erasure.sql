-- What was erased, by which event of the log, and what is left of it in the decisions: no name and no value.
CREATE TABLE erased (
    tenant TEXT NOT NULL,
    event_id TEXT NOT NULL,
    erasure_id TEXT NOT NULL,
    commit BIGINT NOT NULL,
    PRIMARY KEY (tenant, event_id),
    CONSTRAINT erased_of_event FOREIGN KEY (tenant, event_id) REFERENCES event (tenant, event_id),
    CONSTRAINT erased_of_erasure FOREIGN KEY (tenant, erasure_id) REFERENCES event (tenant, event_id),
    CONSTRAINT erased_of_commit FOREIGN KEY (tenant, commit) REFERENCES commit (tenant, commit)
);

CREATE INDEX erased_by_commit ON erased (tenant, commit);

CREATE TABLE tombstone (
    tenant TEXT NOT NULL,
    position BIGINT NOT NULL,
    ordinal INTEGER NOT NULL,
    commit BIGINT NOT NULL,
    event_id TEXT NOT NULL,
    entity TEXT NOT NULL,
    relation TEXT NOT NULL,
    body BYTEA NOT NULL,
    seal BYTEA NOT NULL,
    PRIMARY KEY (tenant, position, ordinal),
    CONSTRAINT tombstone_of_erased FOREIGN KEY (tenant, event_id) REFERENCES erased (tenant, event_id),
    CONSTRAINT tombstone_is_veiled CHECK (
        entity ~ '^( [0-9a-f]{64}| [0-9]+)?$' AND relation ~ '^( [0-9a-f]{64})?$'
    )
);

CREATE INDEX tombstone_of_key ON tombstone (tenant, entity, relation);
CREATE INDEX tombstone_by_event ON tombstone (tenant, event_id);
CREATE INDEX tombstone_by_relation ON tombstone (tenant, relation);

-- Keys that a tombstone bears on beside its own, as `reach` has them of claims.
CREATE TABLE tombstone_reach (
    tenant TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    entity TEXT NOT NULL,
    relation TEXT NOT NULL,
    position BIGINT NOT NULL,
    ordinal INTEGER NOT NULL,
    PRIMARY KEY (tenant, epoch, entity, relation, position, ordinal),
    CONSTRAINT tombstone_reach_of_epoch FOREIGN KEY (tenant, epoch) REFERENCES epoch (tenant, epoch),
    CONSTRAINT tombstone_reach_is_veiled CHECK (entity ~ '^( |$)' AND relation ~ '^( |$)')
);

CREATE INDEX tombstone_reach_by_relation ON tombstone_reach (tenant, epoch, relation);
CREATE INDEX tombstone_reach_by_place ON tombstone_reach (tenant, epoch, position, ordinal);

-- Names that tombstones know by digest and claims that are left say: by them the two find each other.
CREATE TABLE veiled_name (
    tenant TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    veil TEXT NOT NULL,
    name TEXT NOT NULL,
    PRIMARY KEY (tenant, epoch, veil),
    CONSTRAINT veiled_name_of_epoch FOREIGN KEY (tenant, epoch) REFERENCES epoch (tenant, epoch)
);

-- Few: what an erasure looks for that was derived.
CREATE INDEX event_derivation ON event (tenant, position) WHERE kind = 'derivation';

DO $do$
DECLARE
    v_table text;
BEGIN
    FOREACH v_table IN ARRAY ARRAY['erased', 'tombstone', 'tombstone_reach', 'veiled_name'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', v_table);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', v_table);
        EXECUTE format(
            'CREATE POLICY one_tenant ON %I USING (tenant = current_setting(''echoplane.tenant'', true)) '
            'WITH CHECK (tenant = current_setting(''echoplane.tenant'', true))', v_table);
        EXECUTE format('REVOKE ALL ON %I FROM PUBLIC', v_table);
        EXECUTE format('GRANT SELECT ON %I TO echoplane_plane', v_table);
    END LOOP;
END
$do$;
GRANT INSERT ON tombstone, tombstone_reach, veiled_name TO echoplane_plane;

-- Takes the end of a tenant's log: until the transaction ends nothing is appended.
CREATE FUNCTION echoplane_hold_head(p_tenant text) RETURNS bigint
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
BEGIN ATOMIC
    SELECT set_config('echoplane.tenant', p_tenant, true);
    SELECT h.commit FROM head AS h WHERE h.tenant = p_tenant FOR UPDATE;
END;

-- The commit of the erasure that this very transaction appended; whoever appended none may delete nothing.
CREATE FUNCTION echoplane_erasing(p_tenant text) RETURNS bigint
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $function$
DECLARE
    v_commit bigint;
BEGIN
    SELECT h.commit INTO v_commit FROM head AS h
    WHERE h.tenant = p_tenant AND h.xmin = pg_current_xact_id()::xid
        AND NOT EXISTS (
            SELECT FROM event AS e
            WHERE e.tenant = h.tenant AND e.commit = h.commit AND e.kind <> 'erasure'
        );
    IF NOT FOUND THEN
        RAISE integrity_constraint_violation USING
            MESSAGE = 'rows are deleted by an erasure alone, in the transaction that appends it',
            CONSTRAINT = 'erasing', TABLE = 'erased';
    END IF;
    RETURN v_commit;
END
$function$;

-- Destroys the data keys of events, contexts and trails, whatever was projected from those events, and
-- earlier tombstones, by their places.
CREATE FUNCTION echoplane_erase(
    p_tenant text, p_event_ids text[], p_erasure_ids text[], p_contexts text[], p_trails text[],
    p_positions bigint[], p_ordinals integer[]
) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $function$
DECLARE
    v_commit bigint;
BEGIN
    PERFORM set_config('echoplane.tenant', p_tenant, true);
    v_commit := echoplane_erasing(p_tenant);
    IF EXISTS (
        SELECT FROM event AS e WHERE e.tenant = p_tenant AND e.event_id = ANY (p_event_ids)
            AND (e.kind IN ('relation', 'decision', 'erasure') OR e.commit >= v_commit)
    ) OR EXISTS (
        SELECT FROM unnest(p_erasure_ids) AS u (event_id) WHERE NOT EXISTS (
            SELECT FROM event AS e
            WHERE e.tenant = p_tenant AND e.event_id = u.event_id AND e.commit = v_commit
        )
    ) THEN
        RAISE integrity_constraint_violation USING
            MESSAGE = 'no such event is erased, or not by such an event',
            CONSTRAINT = 'erased_kind', TABLE = 'erased';
    END IF;
    INSERT INTO erased (tenant, event_id, erasure_id, commit)
    SELECT p_tenant, u.event_id, u.erasure_id, v_commit
    FROM unnest(p_event_ids, p_erasure_ids) AS u (event_id, erasure_id);

    DELETE FROM unit_vector AS v WHERE v.tenant = p_tenant AND v.unit_id = ANY (p_event_ids);
    DELETE FROM event_key AS k WHERE k.tenant = p_tenant AND k.event_id = ANY (p_event_ids);
    DELETE FROM reach AS r USING claim AS c
    WHERE c.tenant = p_tenant AND c.event_id = ANY (p_event_ids)
        AND r.tenant = c.tenant AND r.epoch = c.epoch AND r.claim_id = c.claim_id;
    DELETE FROM claim AS c WHERE c.tenant = p_tenant AND c.event_id = ANY (p_event_ids);
    DELETE FROM dead_letter AS d USING event AS e
    WHERE e.tenant = p_tenant AND e.event_id = ANY (p_event_ids)
        AND d.tenant = e.tenant AND d.position = e.position;

    DELETE FROM context_key AS k WHERE k.tenant = p_tenant AND k.context_hash = ANY (p_contexts);
    UPDATE context AS c SET ciphertext = ''::bytea
    WHERE c.tenant = p_tenant AND c.context_hash = ANY (p_contexts);
    DELETE FROM trail_key AS k WHERE k.tenant = p_tenant AND k.trail_id = ANY (p_trails);
    DELETE FROM tombstone AS t USING unnest(p_positions, p_ordinals) AS u (position, ordinal)
    WHERE t.tenant = p_tenant AND t.position = u.position AND t.ordinal = u.ordinal;
END
$function$;

-- Takes lines with their cells out of an epoch, and what claims and tombstones reach, to be made anew.
CREATE FUNCTION echoplane_unfold(
    p_tenant text, p_epoch integer, p_lines bigint[], p_claims bytea[], p_positions bigint[],
    p_ordinals integer[], p_veils text[]
) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $function$
BEGIN
    PERFORM set_config('echoplane.tenant', p_tenant, true);
    PERFORM echoplane_erasing(p_tenant);
    DELETE FROM cell AS c USING line AS l
    WHERE l.tenant = p_tenant AND l.epoch = p_epoch AND l.line = ANY (p_lines)
        AND c.tenant = l.tenant AND c.line = l.line;
    DELETE FROM line AS l WHERE l.tenant = p_tenant AND l.epoch = p_epoch AND l.line = ANY (p_lines);
    DELETE FROM reach AS r WHERE r.tenant = p_tenant AND r.epoch = p_epoch AND r.claim_id = ANY (p_claims);
    DELETE FROM tombstone_reach AS r USING unnest(p_positions, p_ordinals) AS u (position, ordinal)
    WHERE r.tenant = p_tenant AND r.epoch = p_epoch AND r.position = u.position AND r.ordinal = u.ordinal;
    -- A name that other lines have is still said there.
    DELETE FROM veiled_name AS n WHERE n.tenant = p_tenant AND n.epoch = p_epoch AND n.veil = ANY (p_veils)
        AND NOT EXISTS (
            SELECT FROM line AS l WHERE l.tenant = p_tenant AND l.epoch = p_epoch AND l.entity = n.name
        ) AND NOT EXISTS (
            SELECT FROM line AS l WHERE l.tenant = p_tenant AND l.epoch = p_epoch AND l.relation = n.name
        );
END
$function$;

REVOKE ALL ON FUNCTION echoplane_hold_head, echoplane_erasing, echoplane_erase, echoplane_unfold FROM PUBLIC;
GRANT EXECUTE ON FUNCTION echoplane_hold_head, echoplane_erase, echoplane_unfold TO echoplane_plane;
