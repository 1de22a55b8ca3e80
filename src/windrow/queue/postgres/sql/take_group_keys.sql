-- Take the keys of new members of groups, whose rows the caller has locked: those that the group never
-- had, as many as it has room for, first come first. :rows JSON array of place, id (the job's), group,
-- group_key (hex; or null, if it only takes room) and room (null: any number); no key is there twice.
-- Returns place, job_id (of the one that has the key already, or null), is_taken (by this).
-- A key that this snapshot does not see is somebody's whose transaction is newer than a caller's
-- own: ON CONFLICT tells the caller to try again, as it has to anyway.
-- gate tenant
WITH given AS MATERIALIZED (
    SELECT place, id, "group", room, decode(group_key, 'hex') AS key
      FROM json_to_recordset(:rows::text::json) AS row (
               place integer, id uuid, "group" uuid, group_key text, room bigint)
),
looked_up AS MATERIALIZED (
    SELECT given.*, had.job_id
      FROM given
      LEFT JOIN LATERAL (
           SELECT job_id
             FROM windrow.group_key AS had
            WHERE had.group_id = given."group" AND had.key = given.key
           OFFSET 0) AS had ON true
),
decided AS MATERIALIZED (
    SELECT *,
           job_id IS NULL AND coalesce(
               count(*) FILTER (WHERE job_id IS NULL)
                   OVER (PARTITION BY "group" ORDER BY place) <= room, true) AS is_taken
      FROM looked_up
),
added AS (
    INSERT INTO windrow.group_key (group_id, key, job_id)
    SELECT "group", key, id FROM decided WHERE is_taken AND key IS NOT NULL
        ON CONFLICT DO NOTHING
)
SELECT place, job_id, is_taken FROM decided ORDER BY place
