-- Takes the lock of a tenant's head and says whether contracts are still those that an append's values
-- were held against: `p_position` is that of the newest `relation` event then, 0 for none, and `p_epoch`
-- the epoch that served. Returns the tenant, to be appended to, or no row if they are others by now.
--
-- Whoever registers a contract takes the same lock, so what is said here holds until the append that
-- goes on in this transaction is done. NULL asks for nothing: there is no value in the append.
CREATE FUNCTION echoplane_under_contracts(p_tenant text, p_position bigint, p_epoch integer)
RETURNS SETOF text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp ROWS 1
AS $function$
BEGIN
    PERFORM set_config('echoplane.tenant', p_tenant, true);
    IF p_position IS NOT NULL THEN
        PERFORM FROM head AS h WHERE h.tenant = p_tenant FOR UPDATE;
        IF EXISTS (
            SELECT FROM event AS e
            WHERE e.tenant = p_tenant AND e.kind = 'relation' AND e.position > p_position
        ) OR (p_position > 0 AND NOT EXISTS (
            SELECT FROM epoch AS e WHERE e.tenant = p_tenant AND e.state = 'serving' AND e.epoch = p_epoch
        )) THEN
            RETURN;
        END IF;
    END IF;
    RETURN NEXT p_tenant;
END
$function$;

REVOKE ALL ON FUNCTION echoplane_under_contracts FROM PUBLIC;
GRANT EXECUTE ON FUNCTION echoplane_under_contracts TO echoplane_plane;
