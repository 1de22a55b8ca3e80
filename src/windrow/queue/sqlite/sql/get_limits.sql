-- Keys with their settings.
-- :keys json array
-- Returns the fields of `limits.Limit`.
SELECT key, active, per_second, burst, tokens, refilled_at, parked_until, turn
FROM windrow_job_limit
WHERE key IN (SELECT value FROM json_each(:keys))
