-- Forget revoked sessions that have expired. :now or null
DELETE FROM windrow.revoked_session
 WHERE expires_at <= coalesce(:now::timestamptz, statement_timestamp())
