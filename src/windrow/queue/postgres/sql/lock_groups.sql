-- Lock groups, the newest first: an inner group is newer than the one its root belongs to, and ends
-- before it. :ids JSON array.
-- Returns id, state, is_cancelled, root, cancel_reason, room (for how many more members; null: any).
-- gate tenant
SELECT id, state, is_cancelled, root, cancel_reason, max_jobs - members AS room
  FROM windrow.job_group
 WHERE id = ANY (ARRAY(SELECT value::uuid FROM json_array_elements_text(:ids::text::json)))
 ORDER BY id DESC
   FOR UPDATE
