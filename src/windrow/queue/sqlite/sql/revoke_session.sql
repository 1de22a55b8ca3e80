-- Revoke a session of the dashboard.
-- :id :expires_at
INSERT INTO windrow_revoked_session (id, expires_at) VALUES (:id, :expires_at)
ON CONFLICT DO NOTHING
