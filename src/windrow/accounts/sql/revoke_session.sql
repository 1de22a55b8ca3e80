-- Revoke a session of the dashboard.
-- takes id text, expires_at time
INSERT INTO windrow.revoked_session (id, expires_at) VALUES (:id, :expires_at)
ON CONFLICT DO NOTHING
