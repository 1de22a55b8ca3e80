-- End runs as completed: the commonest end, in one statement.
-- :ids, :results (null: none) and :are_cleaned of the runs; :tokens, each once, and which of them
-- holds each run (:holders, from 1; null: the first holds all); :now or null.
-- Returns id, lease, and the queues in which a follower became ready (ready_queues).
-- Jobs that belong to a group or are its root are passed over: their end has consequences that take
-- more statements.
WITH {complete_plain},
tallied AS (
    INSERT INTO windrow.tally (n, queue, state)
    SELECT -sum(n)::bigint, queue, 'active' FROM finished GROUP BY queue
     UNION ALL
    SELECT sum(n)::bigint, queue, 'completed' FROM finished GROUP BY queue
     UNION ALL
    SELECT -count(*), queue, 'held' FROM promoted WHERE state <> 'paused' GROUP BY queue
     UNION ALL
    SELECT count(*), queue, state FROM promoted WHERE state <> 'paused' GROUP BY queue, state
),
recorded AS (
    INSERT INTO windrow.event (at, leaf, type, state, queue, kind, tenant, group_id, job_ids)
    SELECT coalesce(:now::timestamptz, statement_timestamp()),
           windrow.event_leaf(coalesce(:now::timestamptz, statement_timestamp())),
           'job.finished', 'completed', queue, kind, tenant, NULL::uuid, job_ids
      FROM finished
)
SELECT id, lease, ARRAY(SELECT queue FROM promoted) AS ready_queues FROM gone
