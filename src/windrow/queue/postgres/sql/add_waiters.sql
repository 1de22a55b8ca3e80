-- Who sleeps until jobs end. :id; :job_ids; :seconds until it is taken for dead, by the server's
-- clock. Jobs that have ended already are left out. Those that are dead are removed.
WITH gone AS (
    DELETE FROM windrow.waiter WHERE until < clock_timestamp() AND id <> :id::uuid
)
INSERT INTO windrow.waiter (queue, job_id, id, until)
SELECT job.queue, job.id, :id::uuid,
       clock_timestamp() + :seconds::double precision * interval '1 second'
  FROM windrow.job_live AS job
 WHERE job.id = ANY (:job_ids::uuid[])
    ON CONFLICT (queue, job_id, id) DO UPDATE SET until = excluded.until
