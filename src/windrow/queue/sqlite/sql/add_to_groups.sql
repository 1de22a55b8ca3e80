-- Members join a group.
-- :id :count
UPDATE windrow_job_group SET added = added + :count, pending = pending + :count WHERE id = :id
