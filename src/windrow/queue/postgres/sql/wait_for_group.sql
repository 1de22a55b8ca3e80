-- Runs of root jobs that are done wait for their groups.
-- :ids and :tokens of runs, of which only root jobs are touched. Returns id, root_of.
-- Whether the group has ended already is looked at afterwards, under the group's lock: the other way
-- round the lock order would be broken.
WITH waiting AS (
    UPDATE windrow.job_live AS job
       SET state = 'waiting',
           stop_as = NULL
      FROM unnest(:ids::uuid[], :tokens::uuid[]) AS given (id, token)
     WHERE job.id = given.id
       AND job.lease = given.token
       AND job.state = 'active'
       AND job.root_of IS NOT NULL
    RETURNING job.id, job.root_of, job.queue
),
tallied AS (
    INSERT INTO windrow.tally (n, queue, state)
    SELECT -count(*), queue, 'active' FROM waiting GROUP BY queue
     UNION ALL
    SELECT count(*), queue, 'waiting' FROM waiting GROUP BY queue
)
SELECT id, root_of FROM waiting
