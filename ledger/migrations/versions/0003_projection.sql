-- Few, and looked for by every fold: what operators decided about events that could not be folded.
CREATE INDEX event_decision ON event (tenant, position) WHERE kind = 'decision';

-- How far behind a tenant is in seconds: when the commits were recorded that it has not folded.
CREATE POLICY every_tenant ON commit FOR SELECT TO echoplane_relay USING (true);
GRANT SELECT (tenant, commit, recorded_at) ON commit TO echoplane_relay;
