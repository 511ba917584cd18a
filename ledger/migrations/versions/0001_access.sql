-- Ciphertext does not compress; out of line it is not even tried.
ALTER TABLE event ALTER COLUMN ciphertext SET STORAGE EXTERNAL;
ALTER TABLE trail ALTER COLUMN ciphertext SET STORAGE EXTERNAL;
ALTER TABLE context ALTER COLUMN ciphertext SET STORAGE EXTERNAL;

-- FORCE: the owner is bound too, unless it is a superuser. With no tenant set the setting is NULL or
-- '', which equals no tenant, so nothing is seen and nothing can be written.
DO $do$
DECLARE
    v_table text;
BEGIN
    FOREACH v_table IN ARRAY ARRAY[
        'tenant', 'token', 'head', 'commit', 'event', 'event_key', 'outbox', 'epoch', 'dead_letter',
        'relation', 'claim', 'reach', 'line', 'cell', 'context', 'context_key', 'trail_head', 'trail',
        'trail_key', 'unit_vector'
    ] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', v_table);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', v_table);
        EXECUTE format(
            'CREATE POLICY one_tenant ON %I USING (tenant = current_setting(''echoplane.tenant'', true)) '
            'WITH CHECK (tenant = current_setting(''echoplane.tenant'', true))', v_table);
        EXECUTE format('REVOKE ALL ON %I FROM PUBLIC', v_table);
    END LOOP;
    FOREACH v_table IN ARRAY ARRAY['tenant', 'head', 'epoch', 'outbox', 'dead_letter'] LOOP
        EXECUTE format('CREATE POLICY every_tenant ON %I FOR SELECT TO echoplane_relay USING (true)', v_table);
    END LOOP;
END
$do$;

-- The plane: the log through its functions alone; claims are only added; a cell is only closed.
GRANT USAGE ON SCHEMA public TO echoplane_plane, echoplane_relay;
GRANT SELECT ON ALL TABLES IN SCHEMA public TO echoplane_plane;
REVOKE ALL ON alembic_version FROM echoplane_plane;
GRANT INSERT, UPDATE (revoked_at) ON token TO echoplane_plane;
GRANT DELETE ON outbox TO echoplane_plane;
GRANT INSERT, UPDATE ON epoch, relation TO echoplane_plane;
GRANT INSERT, UPDATE, DELETE ON dead_letter, unit_vector TO echoplane_plane;
GRANT INSERT ON claim, reach, line, cell, context, context_key, trail, trail_key TO echoplane_plane;
GRANT UPDATE (known) ON cell TO echoplane_plane;
GRANT UPDATE (tail) ON line TO echoplane_plane;
GRANT UPDATE (number) ON trail_head TO echoplane_plane;

-- The relay: numbers and states, of every tenant; no key, no hash, no error text.
GRANT SELECT (tenant, created_at) ON tenant TO echoplane_relay;
GRANT SELECT (tenant, commit, position, recorded_at) ON head TO echoplane_relay;
GRANT SELECT ON epoch, outbox TO echoplane_relay;
GRANT SELECT (tenant, epoch, position, attempts, first_at, last_at) ON dead_letter TO echoplane_relay;

REVOKE ALL ON FUNCTION echoplane_create_tenant, echoplane_append, echoplane_cell_closes_once FROM PUBLIC;
GRANT EXECUTE ON FUNCTION echoplane_create_tenant, echoplane_append TO echoplane_plane;
