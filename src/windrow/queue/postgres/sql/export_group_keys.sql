-- The keys of groups. :ids. Returns group_id, key, job_id.
SELECT group_id, key, job_id FROM windrow.group_key WHERE group_id = ANY (:ids::uuid[])
 ORDER BY group_id, key
