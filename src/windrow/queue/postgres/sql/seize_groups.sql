-- Lock groups at a time when nothing may be waited for: an error if somebody has one of them. :ids JSON
-- array. Returns id, state, is_cancelled, root, cancel_reason, room, as lock_groups does.
-- Only Postgres has it: SQLite has one writer, who waits for nobody.
-- gate tenant
SELECT id, state, is_cancelled, root, cancel_reason, max_jobs - members AS room
  FROM windrow.job_group
 WHERE id = ANY (ARRAY(SELECT value::uuid FROM json_array_elements_text(:ids::text::json)))
 ORDER BY id DESC
   FOR UPDATE NOWAIT
