-- complete_jobs and claim_jobs in one statement, made of the same parts: one round trip and one commit for
-- both. Parameters of both files, and :ends, how many runs there are to end. Returns the claimed jobs as
-- claim_jobs does, and last a row that has no id but done_ids, the runs that were ended, if that were not
-- all of them, and ready_queues.
-- Only Postgres has it: SQLite runs the two in one transaction at the same price.
WITH {complete_plain},
{claim_best},
tallied AS (
    INSERT INTO windrow.tally (n, queue, state)
    SELECT -sum(n)::bigint, queue, 'ready' FROM started GROUP BY queue
     UNION ALL
    SELECT sum(n)::bigint, queue, 'active' FROM started GROUP BY queue
     UNION ALL
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
     UNION ALL
    SELECT coalesce(:now::timestamptz, statement_timestamp()),
           windrow.event_leaf(coalesce(:now::timestamptz, statement_timestamp())),
           'job.started', 'active', queue, kind, tenant, group_id, job_ids
      FROM started
)
SELECT taken.*, stored.payload, stored.headers, stored.tags,
       NULL::uuid[] AS done_ids, NULL::text[] AS ready_queues
  FROM taken
 CROSS JOIN LATERAL (
       SELECT payload, headers, tags
         FROM windrow.job_payload AS stored
        WHERE stored.id = taken.id
       OFFSET 0) AS stored
 UNION ALL
SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
       NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
       CASE WHEN (SELECT sum(n) FROM finished) IS DISTINCT FROM :ends::integer
            THEN ARRAY(SELECT id FROM gone) END,
       ARRAY(SELECT queue FROM promoted)
