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

-- What an append looks for is few rows by index, however long the log is. A plan is kept that was made
-- while the log was short, and would scan it whole for ever after.
ALTER FUNCTION echoplane_append SET enable_seqscan = off;
ALTER FUNCTION echoplane_under_contracts SET enable_seqscan = off;
