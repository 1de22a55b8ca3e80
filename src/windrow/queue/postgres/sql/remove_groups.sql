-- Remove groups that were moved elsewhere with all their jobs. :ids.
DELETE FROM windrow.job_group WHERE id = ANY (:ids::uuid[])
