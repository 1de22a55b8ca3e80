-- The id of a job that lies so many jobs back.
-- {table} windrow.job, or a half of it; {conditions} and {order} those of `listings.py`, with their
-- parameters; :count. Returns id, or nothing if there are not so many.
SELECT job.id
  FROM {table} AS job
 WHERE {conditions}
 ORDER BY {order}
OFFSET :count::integer
 LIMIT 1
