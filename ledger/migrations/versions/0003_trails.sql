-- Trails by what they used: how each was answered, every event in it, and the names it is about. Names
-- are keyed digests beside the trail's own key, so that erasing the one takes the other.
ALTER TABLE trail ADD COLUMN status TEXT, ADD COLUMN event_ids TEXT[];
ALTER TABLE trail_key ADD COLUMN entities BYTEA[];

CREATE INDEX trail_by_time ON trail (tenant, asked_at);
CREATE INDEX trail_by_event ON trail USING gin (event_ids);
CREATE INDEX trail_by_entity ON trail_key USING gin (entities);
