-- A new group. :id, :tenant, :root, :is_open, :retention_seconds, :finish_job (a JobRow); :now or null.
INSERT INTO windrow.job_group (id, created_at, tenant, root, is_open, retention_seconds, finish_job)
VALUES (:id::uuid, coalesce(:now::timestamptz, statement_timestamp()), :tenant::text, :root::uuid,
        :is_open::boolean, :retention_seconds::bigint, :finish_job::json)
