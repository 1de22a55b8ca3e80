-- Held jobs become ready and take their places in the line, in the order given; those that were ready
-- before and gave the places of their limits back keep theirs.
-- :jobs JSON array of id, keys: the keys that were locked and found to have room, which must still
-- be the job's; :now or null. Returns id, queue of those that did. Jobs somebody else has locked are passed over.
WITH given AS MATERIALIZED (
    SELECT row.id, row.keys, row.place
      FROM ROWS FROM (json_to_recordset(:jobs::text::json) AS (id uuid, keys text[]))
           WITH ORDINALITY AS row (id, keys, place)
),
open AS MATERIALIZED (
    SELECT job.id
      FROM windrow.job_live AS job
     WHERE job.id = ANY (ARRAY(SELECT id FROM given))
       AND job.state = 'held'
       AND NOT job.is_follower
       AND job.limit_keys = (SELECT keys FROM given WHERE given.id = job.id)
       FOR UPDATE SKIP LOCKED
),
placed AS MATERIALIZED (
    SELECT id, keys, nextval('windrow.job_seq') AS seq
      FROM (SELECT id, keys FROM given WHERE id IN (SELECT id FROM open) ORDER BY place) AS given
),
promoted AS (
    UPDATE windrow.job_live AS job
       SET state = 'ready',
           seq = CASE WHEN job.is_placed THEN job.seq
                      ELSE (SELECT placed.seq FROM placed WHERE placed.id = job.id) END,
           is_placed = false
     WHERE job.id = ANY (ARRAY(SELECT id FROM placed))
    RETURNING job.id, job.queue
),
slotted AS (
    INSERT INTO windrow.job_slot (key, job_id, taken_at)
    SELECT carried.key, placed.id, coalesce(:now::timestamptz, statement_timestamp())
      FROM placed
     CROSS JOIN LATERAL unnest(keys) AS carried (key)
        ON CONFLICT (key, job_id) DO UPDATE SET taken_at = excluded.taken_at
),
tallied AS (
    INSERT INTO windrow.tally (n, queue, state)
    SELECT -count(*), queue, 'held' FROM promoted GROUP BY queue
     UNION ALL
    SELECT count(*), queue, 'ready' FROM promoted GROUP BY queue
)
SELECT id, queue FROM promoted
