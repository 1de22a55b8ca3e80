-- A run writes. Nothing comes back if a later one has, or if the job has ended.
-- :key, :run, :ended (json or null), :now.
INSERT INTO windrow.far_run (key, run, ended, kept_at)
VALUES (:key::text, :run::bigint, :ended::text,
        coalesce(:now::timestamptz, statement_timestamp()))
ON CONFLICT (key) DO UPDATE
   SET run = excluded.run, ended = excluded.ended, kept_at = excluded.kept_at
 WHERE far_run.ended IS NULL AND far_run.run <= excluded.run
RETURNING run
