-- Reserve keys of a group for a job. :group_id, :job_id, :keys (hex).
-- Returns key (hex) of those that are the job's, now or since before, and a row of null if the group
-- is there. Its row is locked, as by everybody who takes keys; what was taken while we waited for that
-- is not in our snapshot, but in the way of the insert.
-- gate tenant
WITH locked AS MATERIALIZED (
    SELECT id FROM windrow.job_group WHERE id = :group_id::uuid FOR UPDATE
),
added AS (
    INSERT INTO windrow.group_key (group_id, key, job_id)
    SELECT locked.id, decode(given.key, 'hex'), :job_id::uuid
      FROM locked CROSS JOIN unnest(:keys::text[]) AS given (key)
     ORDER BY given.key
        ON CONFLICT DO NOTHING
    RETURNING key
)
SELECT NULL AS key FROM locked
 UNION ALL
SELECT encode(key, 'hex') FROM added
 UNION ALL
SELECT given.key
  FROM unnest(:keys::text[]) AS given (key)
 CROSS JOIN LATERAL (
       SELECT FROM windrow.group_key AS had
        WHERE had.group_id = :group_id::uuid AND had.key = decode(given.key, 'hex')
          AND had.job_id = :job_id::uuid
       OFFSET 0) AS had
