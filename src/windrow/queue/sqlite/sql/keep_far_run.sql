-- A run writes. Nothing comes back if a later one has, or if the job has ended.
-- :key :run :ended (json or null) :now
INSERT INTO windrow_far_run (key, run, ended, kept_at)
VALUES (:key, :run, :ended, :now)
ON CONFLICT (key) DO UPDATE
   SET run = excluded.run, ended = excluded.ended, kept_at = excluded.kept_at
 WHERE windrow_far_run.ended IS NULL AND windrow_far_run.run <= excluded.run
RETURNING run
