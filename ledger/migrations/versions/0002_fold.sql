-- What a claim or a cell comes from is there: asked once for all rows of a statement. A foreign key asks
-- for each row by itself, which took longer than storing the row with all its indexes.
ALTER TABLE claim DROP CONSTRAINT claim_of_epoch, DROP CONSTRAINT claim_of_event;
ALTER TABLE cell DROP CONSTRAINT cell_of_line;
-- The claims of an event are found at its position.
DROP INDEX claim_by_event;

-- A late state finds the next one of its key by where that begins. The seal need not cover it: the body says
-- it too, and verification holds the one against the other.
ALTER TABLE claim ADD COLUMN starts BIGINT;
CREATE INDEX claim_state ON claim (tenant, epoch, entity, relation, starts, position, ordinal)
    WHERE starts IS NOT NULL;
-- Of a state with a coarse start, from when on and until when it may have begun: whether one may hold already at
-- an instant is looked for by it. Likewise no seal covers it.
ALTER TABLE claim ADD COLUMN unsure_from BIGINT, ADD COLUMN unsure_to BIGINT;
CREATE INDEX claim_unsure ON claim (tenant, epoch, entity, relation, unsure_to, unsure_from)
    WHERE unsure_to IS NOT NULL;

CREATE FUNCTION echoplane_claims_come_from_events() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, public, pg_temp
AS $function$
BEGIN
    -- Each event once, however many claims it makes. `OFFSET 0`: it is looked up by index, however old the
    -- statistics are.
    IF EXISTS (
        SELECT FROM (SELECT DISTINCT tenant, position, event_id FROM fresh) AS f WHERE NOT EXISTS (
            SELECT FROM event AS e
            WHERE e.tenant = f.tenant AND e.position = f.position AND e.event_id = f.event_id OFFSET 0
        )
    ) THEN
        RAISE foreign_key_violation USING
            MESSAGE = 'a claim comes from an event of its tenant, at that event''s position',
            CONSTRAINT = 'claim_of_event', TABLE = 'claim';
    END IF;
    IF EXISTS (
        SELECT FROM (SELECT DISTINCT tenant, epoch FROM fresh) AS f WHERE NOT EXISTS (
            SELECT FROM epoch AS e WHERE e.tenant = f.tenant AND e.epoch = f.epoch OFFSET 0
        )
    ) THEN
        RAISE foreign_key_violation USING
            MESSAGE = 'a claim is of an epoch of its tenant', CONSTRAINT = 'claim_of_epoch', TABLE = 'claim';
    END IF;
    RETURN NULL;
END
$function$;

CREATE TRIGGER claim_comes_from_event AFTER INSERT ON claim REFERENCING NEW TABLE AS fresh
FOR EACH STATEMENT EXECUTE FUNCTION echoplane_claims_come_from_events();

CREATE FUNCTION echoplane_cells_are_on_lines() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, public, pg_temp
AS $function$
BEGIN
    IF EXISTS (
        SELECT FROM (SELECT DISTINCT tenant, line FROM fresh) AS f WHERE NOT EXISTS (
            SELECT FROM line AS l WHERE l.tenant = f.tenant AND l.line = f.line OFFSET 0
        )
    ) THEN
        RAISE foreign_key_violation USING
            MESSAGE = 'a cell is on a line of its tenant', CONSTRAINT = 'cell_of_line', TABLE = 'cell';
    END IF;
    RETURN NULL;
END
$function$;

CREATE TRIGGER cell_is_on_line AFTER INSERT ON cell REFERENCING NEW TABLE AS fresh
FOR EACH STATEMENT EXECUTE FUNCTION echoplane_cells_are_on_lines();

-- The other end: what something comes from neither goes nor gets another name.
CREATE FUNCTION echoplane_is_named() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, public, pg_temp
AS $function$
DECLARE
    v_named boolean;
BEGIN
    CASE TG_TABLE_NAME
        WHEN 'commit' THEN
            v_named := EXISTS (
                SELECT FROM event AS e WHERE e.tenant = OLD.tenant AND e.position = OLD.first_position
            );
        WHEN 'event' THEN
            v_named := EXISTS (
                SELECT FROM epoch AS e CROSS JOIN LATERAL (
                    SELECT FROM claim AS c
                    WHERE c.tenant = e.tenant AND c.epoch = e.epoch AND c.position = OLD.position OFFSET 0
                ) AS c WHERE e.tenant = OLD.tenant
            );
        WHEN 'epoch' THEN
            v_named := EXISTS (SELECT FROM claim AS c WHERE c.tenant = OLD.tenant AND c.epoch = OLD.epoch);
        WHEN 'line' THEN
            v_named := EXISTS (SELECT FROM cell AS c WHERE c.tenant = OLD.tenant AND c.line = OLD.line);
    END CASE;
    IF v_named THEN
        RAISE foreign_key_violation USING
            MESSAGE = 'something comes from it', CONSTRAINT = TG_NAME, TABLE = TG_TABLE_NAME;
    END IF;
    RETURN NULL;
END
$function$;

CREATE TRIGGER event_is_named AFTER DELETE ON event FOR EACH ROW EXECUTE FUNCTION echoplane_is_named();
CREATE TRIGGER epoch_is_named AFTER DELETE ON epoch FOR EACH ROW EXECUTE FUNCTION echoplane_is_named();
CREATE TRIGGER line_is_named AFTER DELETE ON line FOR EACH ROW EXECUTE FUNCTION echoplane_is_named();

CREATE TRIGGER event_is_renamed AFTER UPDATE ON event FOR EACH ROW
WHEN ((OLD.tenant, OLD.event_id) IS DISTINCT FROM (NEW.tenant, NEW.event_id))
EXECUTE FUNCTION echoplane_is_named();
CREATE TRIGGER epoch_is_renamed AFTER UPDATE ON epoch FOR EACH ROW
WHEN ((OLD.tenant, OLD.epoch) IS DISTINCT FROM (NEW.tenant, NEW.epoch))
EXECUTE FUNCTION echoplane_is_named();
CREATE TRIGGER line_is_renamed AFTER UPDATE ON line FOR EACH ROW
WHEN ((OLD.tenant, OLD.line) IS DISTINCT FROM (NEW.tenant, NEW.line))
EXECUTE FUNCTION echoplane_is_named();

REVOKE ALL ON FUNCTION echoplane_claims_come_from_events, echoplane_cells_are_on_lines, echoplane_is_named
    FROM PUBLIC;
