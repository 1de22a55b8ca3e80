-- A new group; one that is there already stays as it is.
-- :id :is_open :root :tenant :finish_job (json) :retention_seconds :max_jobs :now
INSERT INTO windrow_job_group (
  id, state, is_open, root, tenant, finish_job, retention_seconds, max_jobs, created_at
)
VALUES (:id, 'active', :is_open, :root, :tenant, :finish_job, :retention_seconds, :max_jobs, :now)
ON CONFLICT (id) DO NOTHING
