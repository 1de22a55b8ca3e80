-- Whether some held jobs are passed over: a queue or a group is paused, or a lane unserved.
-- :now
-- Returns is_closed.
SELECT
  EXISTS (SELECT 1 FROM windrow_queue WHERE is_paused = 1)
  OR EXISTS (SELECT 1 FROM windrow_job_group WHERE is_paused = 1)
  OR EXISTS (SELECT 1 FROM windrow_unserved WHERE until > :now) AS is_closed
