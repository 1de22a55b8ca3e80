-- The live jobs that hold unique keys, and their followers. :keys. Returns id, tenant, unique_key,
-- is_follower. `find_holders` is given whole rows here, as callers' drivers take them.
SELECT id, tenant, unique_key, is_follower
  FROM windrow.job_live
 WHERE unique_key IS NOT NULL AND unique_key = ANY (:keys::text[])
