-- Lock groups, the newest first: an inner group is newer than the one its root belongs to, and ends
-- before it. :ids JSON array.
-- Returns id, state, is_cancelled, root, cancel_reason.
SELECT id, state, is_cancelled, root, cancel_reason
  FROM windrow.job_group
 WHERE id = ANY (ARRAY(SELECT value::uuid FROM json_array_elements_text(:ids::text::json)))
 ORDER BY id DESC
   FOR UPDATE
