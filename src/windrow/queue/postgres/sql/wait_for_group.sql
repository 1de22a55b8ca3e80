-- Runs of root jobs that are done wait for their groups.
-- :ids, :tokens, :uses_attempts, :results or :hashes, and :are_cleaned of runs, of which only root
-- jobs are touched. Returns id, root_of.
-- Whether the group has ended already is looked at afterwards, under the group's lock: the other way
-- round the lock order would be broken.
WITH waiting AS (
    UPDATE windrow.job_live AS job
       SET state = 'waiting',
           stop_as = NULL,
           attempts = job.attempts + given.uses_attempt::integer,
           is_cleaned = job.is_cleaned OR given.is_cleaned,
           result = given.result,
           result_hash = given.hash
      FROM unnest(:ids::uuid[], :tokens::uuid[], :uses_attempts::boolean[], :results::json[],
                  :hashes::bytea[], :are_cleaned::boolean[])
           AS given (id, token, uses_attempt, result, hash, is_cleaned)
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
