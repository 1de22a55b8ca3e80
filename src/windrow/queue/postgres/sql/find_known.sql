-- Jobs, live or finished, by id. :ids JSON array. Returns id, seq, state, run_at, created_at.
-- gate enqueue
SELECT job.id, job.seq, job.state, job.run_at, job.created_at
  FROM json_array_elements_text(:ids::text::json) AS given (id)
 CROSS JOIN LATERAL (
       SELECT * FROM windrow.job WHERE job.id = given.id::uuid OFFSET 0) AS job
