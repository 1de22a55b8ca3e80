-- Keep what a step of a running job gave back, once. :id, :token, :name, :result; :now or null.
-- Returns nothing if the token is stale; else kept, the result of the first time, or null if this is
-- it. The lock on the job keeps a rescue away, so that nothing is kept for a run that is over. A
-- conflicting row may be younger than this statement's snapshot: only an update can read it.
WITH held AS MATERIALIZED (
    SELECT id FROM windrow.job_live
     WHERE id = :id::uuid AND lease = :token::uuid AND state = 'active'
       FOR NO KEY UPDATE
)
INSERT INTO windrow.job_step AS step (job_id, name, at, result)
SELECT id, :name::text, coalesce(:now::timestamptz, statement_timestamp()), :result::text::json
  FROM held
    ON CONFLICT (job_id, name) DO UPDATE SET at = step.at
RETURNING CASE WHEN xmax <> 0 THEN step.result END AS kept  -- xmax is 0 of a row just inserted
