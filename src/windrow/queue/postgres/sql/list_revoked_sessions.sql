-- The sessions that are revoked. :now or null
SELECT id FROM windrow.revoked_session
 WHERE expires_at > coalesce(:now::timestamptz, statement_timestamp())
