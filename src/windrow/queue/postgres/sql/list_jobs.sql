-- A page of jobs, newest first, without results and histories.
-- :after, the last id of the page before, or null; :limit; each of :queue, :kind, :state, :states,
-- :tenant, :group_id, :tag, :error, :text, :unique_key, :since may be null: any. One state is given as :state,
-- several as :states: only the former keeps the order of the index by state. :is_running, true if
-- only active ones are wanted, else null: few are active among many that wait, and the leases name
-- them.
SELECT job.id, job.seq, job.queue, job.kind, job.state, job.priority, job.attempts, job.crashes,
       job.runs, job.max_attempts, job.max_crashes, job.created_at, job.run_at, job.started_at,
       job.finished_at,
       coalesce(nullif(job.expires_at, 'infinity'), job_group.expires_at) AS expires_at,
       job.tenant, job.group_id,
       job.root_of, job.unique_key, job.error, job.lease_seconds, job.retention_seconds,
       job.stop_as, job.limit_keys, job.max_hold_seconds, job.is_cleaned, stored.payload, stored.headers, stored.tags,
       NULL::json AS result, NULL::bytea AS body,
       lease.token AS lease, lease.worker, lease.expires_at AS lease_expires_at,
       progress.percent, progress.message, progress.counters, progress.updated_at
  FROM (SELECT *
          FROM windrow.job
         WHERE (:after::uuid IS NULL OR job.id < :after)
           AND (:since::uuid IS NULL OR job.id >= :since)
           AND (:queue::text IS NULL OR job.queue = :queue)
           AND (:kind::text IS NULL OR job.kind = :kind)
           AND (:state::text IS NULL OR job.state = :state)
           AND (:states::text[] IS NULL OR job.state = ANY (:states))
           AND (:is_running::boolean IS NULL
                OR job.id = ANY (ARRAY(SELECT unnest(job_ids) FROM windrow.lease)))
           AND (:tenant::text IS NULL OR job.tenant = :tenant)
           AND (:group_id::uuid IS NULL OR job.group_id = :group_id)
           AND (:unique_key::text IS NULL OR job.unique_key = :unique_key)
           AND (:error::text IS NULL OR position(lower(:error) IN lower(job.error)) > 0)
           AND (:tag::text IS NULL OR EXISTS (
                    SELECT FROM windrow.job_payload AS tagged
                     WHERE tagged.id = job.id AND :tag = ANY (tagged.tags)))
           AND (:text::text IS NULL OR EXISTS (
                    SELECT FROM windrow.job_payload AS told
                     WHERE told.id = job.id
                       AND position(lower(:text) IN lower(told.payload::text)) > 0))
         ORDER BY job.id DESC
         LIMIT :limit::integer) AS job
  JOIN windrow.job_payload AS stored ON stored.id = job.id
  LEFT JOIN windrow.lease ON lease.token = job.lease AND job.state = 'active'
  LEFT JOIN windrow.job_progress AS progress ON progress.id = job.id
  LEFT JOIN windrow.job_group ON job_group.id = job.group_id AND job.finished_at IS NOT NULL
 ORDER BY job.id DESC
