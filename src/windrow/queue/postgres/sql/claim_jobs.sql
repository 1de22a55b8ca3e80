-- Make the best ready jobs of some queues active, under new leases: one per lease length.
-- :queues; :shares, how many at most of each; :floor_priorities and :floor_seqs, the place up to
-- which this process has seen each queue claimed; :kinds, :tenants or null; :worker of the lease, and
-- its length: the job's own, else that of its kind in :kind_seconds (an object or null), else :seconds;
-- :token of the first lease; :now or null. Returns the jobs with their payloads, in no particular
-- order. What is mostly the same is not sent with each, because reading it takes the client longer
-- than all else: run_at is null where it is created_at, lease where it is :token; started_at is in
-- microseconds since 1970.
WITH {claim_best},
tallied AS (
    INSERT INTO windrow.tally (n, queue, state)
    SELECT -sum(n)::bigint, queue, 'ready' FROM started GROUP BY queue
     UNION ALL
    SELECT sum(n)::bigint, queue, 'active' FROM started GROUP BY queue
),
recorded AS (
    INSERT INTO windrow.event (at, leaf, type, state, queue, kind, tenant, group_id, job_ids)
    SELECT coalesce(:now::timestamptz, statement_timestamp()),
           windrow.event_leaf(coalesce(:now::timestamptz, statement_timestamp())),
           'job.started', 'active', queue, kind, tenant, group_id, job_ids
      FROM started
)
SELECT taken.*, stored.payload, stored.headers, stored.tags
  FROM taken
 CROSS JOIN LATERAL (
       SELECT payload, headers, tags
         FROM windrow.job_payload AS stored
        WHERE stored.id = taken.id
       OFFSET 0) AS stored
