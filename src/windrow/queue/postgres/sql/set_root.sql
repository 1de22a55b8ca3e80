-- Make a live job, locked before, the root of a group. :id; :group_id.
-- gate tenant
UPDATE windrow.job_live SET root_of = :group_id::uuid WHERE id = :id::uuid
