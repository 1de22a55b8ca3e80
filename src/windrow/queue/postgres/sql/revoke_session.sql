-- Revoke a session of the dashboard. :id, :expires_at
INSERT INTO windrow.revoked_session (id, expires_at) VALUES (:id::text, :expires_at::timestamptz)
    ON CONFLICT DO NOTHING
