-- A new group; one that is there already stays as it is. :id, :tenant, :root, :is_open, :retention_seconds, :finish_job (a JobRow), :max_jobs; :now or null.
-- gate tenant
INSERT INTO windrow.job_group (id, created_at, tenant, root, is_open, retention_seconds, finish_job,
                              max_jobs)
VALUES (:id::uuid, coalesce(:now::timestamptz, statement_timestamp()), :tenant::text, :root::uuid,
        :is_open::boolean, :retention_seconds::bigint, :finish_job::json, :max_jobs::bigint)
ON CONFLICT (id) DO NOTHING
