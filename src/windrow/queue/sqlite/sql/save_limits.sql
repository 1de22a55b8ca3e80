-- Keep the tokens and the turn of a key.
-- :key :tokens :refilled_at :turn
INSERT INTO windrow_job_limit (key, tokens, refilled_at, turn)
VALUES (:key, :tokens, :refilled_at, :turn)
ON CONFLICT (key) DO UPDATE
SET tokens = excluded.tokens, refilled_at = excluded.refilled_at, turn = excluded.turn
