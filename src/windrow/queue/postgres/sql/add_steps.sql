-- Steps of jobs that came from elsewhere. :ids, :names, :times, :results.
INSERT INTO windrow.job_step (job_id, name, at, result)
SELECT id, name, at, result::json
  FROM unnest(:ids::uuid[], :names::text[], :times::timestamptz[], :results::text[])
       AS given (id, name, at, result)
