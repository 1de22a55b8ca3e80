-- Forget revoked sessions that have expired.
-- :now
DELETE FROM windrow_revoked_session WHERE expires_at <= :now
