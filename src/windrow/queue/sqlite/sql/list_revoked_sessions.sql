-- The sessions that are revoked.
-- :now
SELECT id FROM windrow_revoked_session WHERE expires_at > :now
