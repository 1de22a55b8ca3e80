-- A key that a group has from now on.
-- :group_id :key :job_id
INSERT INTO windrow_group_key (group_id, key, job_id) VALUES (:group_id, :key, :job_id)
