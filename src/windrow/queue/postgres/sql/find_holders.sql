-- Who holds the unique keys of new jobs: the first one and its follower, if any.
-- :rows JSON array of JobRow. Returns for each holder the new job's id (wanted_by), and id, seq,
-- state, run_at, created_at, group_id, is_follower of the holder.
-- gate enqueue
SELECT given.id AS wanted_by, job.id, job.seq, job.state, job.run_at, job.created_at,
       job.group_id, job.is_follower
  FROM json_to_recordset(:rows::text::json) AS given (id uuid, tenant text, "unique" text)
 CROSS JOIN LATERAL (
       SELECT * FROM windrow.job_live AS live
        WHERE live.unique_key = given."unique"
          AND live.tenant IS NOT DISTINCT FROM given.tenant
       OFFSET 0) AS job
