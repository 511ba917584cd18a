-- What the planner presumes until a table is first analysed. Left alone it takes every column for 200
-- different values, so that the tenant and the epoch seem to find one row by themselves: then it looks
-- claims up by whichever index begins with the two, and reads the whole tenant once for each.
SELECT pg_restore_attribute_stats(
    'schemaname', 'public', 'relname', c.relname::text, 'attname', a.attname::text, 'inherited', false,
    'null_frac', 0::real, 'avg_width', CASE a.attname WHEN 'tenant' THEN 8 ELSE 4 END, 'n_distinct', 1::real
)
FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND a.attname IN ('tenant', 'epoch')
    AND c.relname <> 'alembic_version';
-- An ANALYZE would write over that, and presume the same of every tenant that began after it: of the tables
-- that grow with the log it leaves these two columns alone.
DO $do$
DECLARE
    v_column record;
BEGIN
    FOR v_column IN SELECT c.relname, a.attname FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid
        WHERE c.relnamespace = 'public'::regnamespace AND a.attname IN ('tenant', 'epoch')
        AND c.relname IN ('commit', 'event', 'event_key', 'claim', 'reach', 'line', 'cell')
    LOOP
        EXECUTE format('ALTER TABLE %I ALTER COLUMN %I SET STATISTICS 0', v_column.relname, v_column.attname);
    END LOOP;
END
$do$;
