-- The ids of groups, in their order. :after or null; :limit. Returns id.
SELECT id
  FROM windrow.job_group
 WHERE id > coalesce(:after::uuid, '00000000-0000-0000-0000-000000000000')
 ORDER BY id
 LIMIT :limit::bigint
