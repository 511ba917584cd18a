-- Views by name: set once, never changed, and taken away whole.
CREATE TABLE pinned_view (
    tenant TEXT NOT NULL,
    name TEXT NOT NULL,
    valid_at TIMESTAMP WITH TIME ZONE NOT NULL,
    known_at TIMESTAMP WITH TIME ZONE NOT NULL,
    epoch INTEGER NOT NULL,
    cut BIGINT NOT NULL,
    pinned_at TIMESTAMP WITH TIME ZONE NOT NULL,
    PRIMARY KEY (tenant, name),
    CONSTRAINT pinned_view_of_epoch FOREIGN KEY (tenant, epoch) REFERENCES epoch (tenant, epoch),
    -- A handle, not a sentence: it stands in the clear, in paths and in answers.
    CONSTRAINT pinned_view_name CHECK (name ~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$')
);
ALTER TABLE pinned_view ENABLE ROW LEVEL SECURITY;
ALTER TABLE pinned_view FORCE ROW LEVEL SECURITY;
CREATE POLICY one_tenant ON pinned_view USING (tenant = current_setting('echoplane.tenant', true))
    WITH CHECK (tenant = current_setting('echoplane.tenant', true));
REVOKE ALL ON pinned_view FROM PUBLIC;
-- No UPDATE: a view that could be moved would answer otherwise under the same name.
GRANT SELECT, INSERT, DELETE ON pinned_view TO echoplane_plane;

-- What comes after the last year that a term can name has no upper bound that a range could hold, so
-- nothing can be known from then on: an append that states such a clock is refused.
ALTER TABLE commit ADD CONSTRAINT commit_clock_in_range CHECK (recorded_at < '9999-01-01T00:00:00Z');
