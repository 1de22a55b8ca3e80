-- A live job becomes the root of a group.
-- :id :group_id
UPDATE windrow_job_live SET root_of = :group_id WHERE id = :id
