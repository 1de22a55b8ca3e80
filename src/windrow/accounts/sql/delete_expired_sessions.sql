-- Delete revoked sessions whose cookies have expired.
DELETE FROM windrow.revoked_session WHERE expires_at <= {now}
