-- The revoked sessions whose cookies have not expired.
-- gives id text
SELECT id FROM windrow.revoked_session WHERE expires_at > {now}
