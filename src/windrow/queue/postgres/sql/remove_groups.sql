-- Remove groups that were moved elsewhere with all their jobs, with their keys and notes. :ids.
WITH forgotten AS (
    DELETE FROM windrow.group_key WHERE group_id = ANY (:ids::uuid[])
),
unnoted AS (
    DELETE FROM windrow.group_note WHERE group_id = ANY (:ids::uuid[])
)
DELETE FROM windrow.job_group WHERE id = ANY (:ids::uuid[])
