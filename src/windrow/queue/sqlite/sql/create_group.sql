-- A new group; one that is there already stays as it is.
-- :id :is_open :root :tenant :finish_job (json) :retention_seconds :now
INSERT INTO windrow_job_group (id, state, is_open, root, tenant, finish_job, retention_seconds, created_at)
VALUES (:id, 'active', :is_open, :root, :tenant, :finish_job, :retention_seconds, :now)
ON CONFLICT (id) DO NOTHING
