-- Groups that have stood without a member for :seconds, or for :held_seconds if they are held open; not
-- those of roots, which may add some yet.
-- :now :seconds :held_seconds :limit
-- Returns id.
SELECT id FROM windrow_job_group
WHERE state = 'active' AND added = 0 AND root IS NULL
  AND created_at <= :now - 1000000 * CASE WHEN is_open = 1 THEN :held_seconds ELSE :seconds END
ORDER BY id
LIMIT :limit
