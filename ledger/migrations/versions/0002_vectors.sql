-- A vector goes with the data key of its event, in the same transaction, and none is stored for an event
-- without one: whoever stores it while the event is being erased waits for the end of that, and is refused.
-- A condition in the statement alone would not do: it sees the key until the erasure is committed, and
-- the erasure does not see the vector until it is.
-- The owner is bound by row level security too, so it is taken off for this.
ALTER TABLE unit_vector NO FORCE ROW LEVEL SECURITY;
ALTER TABLE event_key NO FORCE ROW LEVEL SECURITY;
DELETE FROM unit_vector AS u WHERE NOT EXISTS (
    SELECT FROM event_key AS k WHERE k.tenant = u.tenant AND k.event_id = u.unit_id
);
ALTER TABLE unit_vector ADD CONSTRAINT unit_vector_of_key
    FOREIGN KEY (tenant, unit_id) REFERENCES event_key (tenant, event_id) ON DELETE CASCADE;
ALTER TABLE unit_vector FORCE ROW LEVEL SECURITY;
ALTER TABLE event_key FORCE ROW LEVEL SECURITY;
