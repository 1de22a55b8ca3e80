-- Leases that have not expired last their length from now.
-- :tokens json array, :seconds a new length or null, :now
-- Returns token, expires_at.
UPDATE windrow_lease
SET seconds = coalesce(:seconds, seconds),
  expires_at = :now + coalesce(:seconds, seconds) * 1000000
WHERE token IN (SELECT value FROM json_each(:tokens)) AND expires_at > :now
RETURNING token, expires_at
