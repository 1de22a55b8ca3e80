-- Rows for keys that nobody set a limit for, so that they can be locked. :keys.
-- A transaction of its own: to lock them in their order, all must be there first.
INSERT INTO windrow.job_limit (key)
SELECT key FROM unnest(:keys::text[]) AS given (key) ORDER BY key
    ON CONFLICT DO NOTHING
