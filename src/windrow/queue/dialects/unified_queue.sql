-- The dialect `unified_queue`: one ingestion queue, told apart by item_type and op, as a view over the
-- one queue. It shows the jobs of the queue `unified_queue` whose kind is a pair of item_type and op.
--
--   queue_id            id, so it has to be a UUID in its usual spelling
--   item_type, op       kind, with a dot between: file.ingest
--   tenant_id           tenant ('' for none)
--   collection, branch, metadata   headers of the same names
--   priority            priority; only jobs with 0 to 10 are shown, and no others taken
--   status              pending: ready or scheduled · in_progress: active · done: completed ·
--                       failed: failed or cancelled. What is nobody's to take through this view (held,
--                       paused, waiting) is in_progress too, and its worker_id says why: windrow:paused
--   created_at, …       times as text in ISO 8601, in UTC, with microseconds
--   updated_at          the latest of created_at, started_at, finished_at and the last error; not written
--   lease_until         until when the lease lasts; of a pending row, when it is due
--   worker_id           worker of the lease, there with unified_queue: before it; after the end the
--                       header unified_queue_worker_id
--   idempotency_key     unique_key; windrow:<id> for a job without one. Unique among the rows that are
--                       pending or in progress: the key of one that is done or failed can be used again
--   payload_json        payload
--   retry_count         attempts + crashes
--   max_retries         max_attempts - 1, max_crashes - 1
--   error_message       error
--   last_error_at       the last line of the error history
--
-- A run that a Windrow worker holds can neither be ended nor taken from here, nor that of another worker
-- while its lease lasts: such an update changes nothing.

-- Not what IMMUTABLE promises of to_char in general; this format and UTC depend on no setting.
CREATE OR REPLACE FUNCTION windrow_dialect.as_iso(at timestamptz) RETURNS text
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
BEGIN
    RETURN to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"');
END
$$;

-- A time that was given as text; UTC, if it does not say otherwise.
CREATE OR REPLACE FUNCTION windrow_dialect.from_iso(given text) RETURNS timestamptz
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET timezone = 'UTC' AS $$
    SELECT given::timestamptz
$$;

CREATE OR REPLACE VIEW public.unified_queue WITH (security_invoker = true) AS
SELECT job.id::text AS queue_id,
       split_part(job.kind, '.', 1) AS item_type,
       split_part(job.kind, '.', 2) AS op,
       coalesce(job.tenant, '') AS tenant_id,
       coalesce((SELECT stored.headers ->> 'collection'
                   FROM windrow.job_payload AS stored WHERE stored.id = job.id), '') AS collection,
       job.priority,
       CASE WHEN job.state IN ('ready', 'scheduled') THEN 'pending'
            WHEN job.state = 'completed' THEN 'done'
            WHEN job.state IN ('failed', 'cancelled') THEN 'failed'
            ELSE 'in_progress' END AS status,
       windrow_dialect.as_iso(job.created_at) AS created_at,
       windrow_dialect.as_iso(greatest(
           job.created_at, job.started_at, job.finished_at,
           (SELECT max(error.at) FROM windrow.job_error AS error
             WHERE error.job_id = job.id))) AS updated_at,
       windrow_dialect.as_iso(
           CASE WHEN job.state = 'scheduled' THEN job.run_at
                WHEN job.state = 'active'
                THEN (SELECT held.expires_at FROM windrow.lease AS held
                       WHERE held.token = job.lease) END) AS lease_until,
       CASE WHEN job.state = 'active'
            THEN (SELECT nullif(regexp_replace(held.worker, '^unified_queue:', ''), '')
                    FROM windrow.lease AS held WHERE held.token = job.lease)
            WHEN job.state IN ('completed', 'failed', 'cancelled')
            THEN (SELECT stored.headers ->> 'unified_queue_worker_id'
                    FROM windrow.job_payload AS stored WHERE stored.id = job.id)
            WHEN job.state NOT IN ('ready', 'scheduled') THEN 'windrow:' || job.state
       END AS worker_id,
       coalesce(job.unique_key, 'windrow:' || job.id::text) AS idempotency_key,
       (SELECT stored.payload::text
          FROM windrow.job_payload AS stored WHERE stored.id = job.id) AS payload_json,
       job.attempts + job.crashes AS retry_count,
       job.max_attempts - 1 AS max_retries,
       job.error AS error_message,
       windrow_dialect.as_iso((SELECT max(error.at) FROM windrow.job_error AS error
                                WHERE error.job_id = job.id)) AS last_error_at,
       (SELECT CASE WHEN (stored.headers -> 'branch') IS NULL THEN 'main'
                    ELSE stored.headers ->> 'branch' END
          FROM windrow.job_payload AS stored WHERE stored.id = job.id) AS branch,
       (SELECT CASE WHEN (stored.headers -> 'metadata') IS NULL THEN '{}'
                    ELSE stored.headers ->> 'metadata' END
          FROM windrow.job_payload AS stored WHERE stored.id = job.id) AS metadata
  FROM windrow.job AS job
 WHERE job.queue = 'unified_queue'
   AND NOT job.is_follower
   AND job.priority BETWEEN 0 AND 10
   AND job.kind IN ('content.ingest', 'content.update', 'content.delete',
                    'file.ingest', 'file.update', 'file.delete',
                    'folder.ingest', 'folder.delete', 'folder.scan',
                    'project.ingest', 'project.delete', 'project.scan',
                    'library.ingest', 'library.update', 'library.delete',
                    'delete_tenant.delete', 'delete_document.delete', 'rename.update');

ALTER VIEW public.unified_queue ALTER COLUMN priority SET DEFAULT 5;
ALTER VIEW public.unified_queue ALTER COLUMN status SET DEFAULT 'pending';
ALTER VIEW public.unified_queue ALTER COLUMN created_at SET DEFAULT windrow_dialect.as_iso(now());
ALTER VIEW public.unified_queue ALTER COLUMN updated_at SET DEFAULT windrow_dialect.as_iso(now());
ALTER VIEW public.unified_queue ALTER COLUMN retry_count SET DEFAULT 0;
ALTER VIEW public.unified_queue ALTER COLUMN max_retries SET DEFAULT 3;
ALTER VIEW public.unified_queue ALTER COLUMN branch SET DEFAULT 'main';
ALTER VIEW public.unified_queue ALTER COLUMN metadata SET DEFAULT '{}';

-- In place of the seven. The expressions are those of the view, to the letter. Each index asks that its
-- expression is not null, which is always so: else a plan that was made while the queue was empty may go
-- through all of one of them to find a row by its id.
-- dequeue; and lease_expiry and worker, because few jobs run at a time:
CREATE INDEX IF NOT EXISTS unified_queue_dequeue ON windrow.job_live (
    (CASE WHEN state IN ('ready', 'scheduled') THEN 'pending'
          WHEN state = 'completed' THEN 'done'
          WHEN state IN ('failed', 'cancelled') THEN 'failed'
          ELSE 'in_progress' END), priority DESC, windrow_dialect.as_iso(created_at))
    WHERE queue = 'unified_queue'
      AND (CASE WHEN state IN ('ready', 'scheduled') THEN 'pending'
                WHEN state = 'completed' THEN 'done'
                WHEN state IN ('failed', 'cancelled') THEN 'failed'
                ELSE 'in_progress' END) IS NOT NULL;
-- failed:
CREATE INDEX IF NOT EXISTS unified_queue_ended ON windrow.job_finished (
    (CASE WHEN state IN ('ready', 'scheduled') THEN 'pending'
          WHEN state = 'completed' THEN 'done'
          WHEN state IN ('failed', 'cancelled') THEN 'failed'
          ELSE 'in_progress' END))
    WHERE queue = 'unified_queue'
      AND (CASE WHEN state IN ('ready', 'scheduled') THEN 'pending'
                WHEN state = 'completed' THEN 'done'
                WHEN state IN ('failed', 'cancelled') THEN 'failed'
                ELSE 'in_progress' END) IS NOT NULL;
-- idempotency:
CREATE INDEX IF NOT EXISTS unified_queue_key ON windrow.job_live (
    (coalesce(unique_key, 'windrow:' || id::text)))
    WHERE queue = 'unified_queue' AND coalesce(unique_key, 'windrow:' || id::text) IS NOT NULL;
CREATE INDEX IF NOT EXISTS unified_queue_ended_key ON windrow.job_finished (
    (coalesce(unique_key, 'windrow:' || id::text)))
    WHERE queue = 'unified_queue' AND coalesce(unique_key, 'windrow:' || id::text) IS NOT NULL;
-- collection_tenant, by the tenant:
CREATE INDEX IF NOT EXISTS unified_queue_tenant ON windrow.job_live ((coalesce(tenant, '')))
    WHERE queue = 'unified_queue' AND coalesce(tenant, '') IS NOT NULL;
CREATE INDEX IF NOT EXISTS unified_queue_ended_tenant ON windrow.job_finished ((coalesce(tenant, '')))
    WHERE queue = 'unified_queue' AND coalesce(tenant, '') IS NOT NULL;
-- item_type:
CREATE INDEX IF NOT EXISTS unified_queue_type ON windrow.job_live (split_part(kind, '.', 1))
    WHERE queue = 'unified_queue' AND split_part(kind, '.', 1) IS NOT NULL;
CREATE INDEX IF NOT EXISTS unified_queue_ended_type ON windrow.job_finished (split_part(kind, '.', 1))
    WHERE queue = 'unified_queue' AND split_part(kind, '.', 1) IS NOT NULL;
-- The primary key, which is text here.
CREATE INDEX IF NOT EXISTS unified_queue_id ON windrow.job_live ((id::text))
    WHERE queue = 'unified_queue' AND id::text IS NOT NULL;
CREATE INDEX IF NOT EXISTS unified_queue_ended_id ON windrow.job_finished ((id::text))
    WHERE queue = 'unified_queue' AND id::text IS NOT NULL;

-- By this the planner leaves the leaves of finished jobs out of the dequeue and the stale leases.
DO $$
BEGIN
    ALTER TABLE windrow.job_finished ADD CONSTRAINT unified_queue_status CHECK (
        CASE WHEN state IN ('ready', 'scheduled') THEN 'pending'
             WHEN state = 'completed' THEN 'done'
             WHEN state IN ('failed', 'cancelled') THEN 'failed'
             ELSE 'in_progress' END IN ('done', 'failed'));
EXCEPTION WHEN duplicate_object THEN NULL;
END $$;

-- The CHECKs of the original.
CREATE OR REPLACE FUNCTION windrow_dialect.check_unified_row(given public.unified_queue) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF given.item_type IS NULL OR given.op IS NULL OR given.tenant_id IS NULL
       OR given.collection IS NULL OR given.priority IS NULL OR given.status IS NULL
       OR given.idempotency_key IS NULL OR given.payload_json IS NULL OR given.retry_count IS NULL
       OR given.max_retries IS NULL OR given.created_at IS NULL OR given.updated_at IS NULL THEN
        RAISE not_null_violation USING MESSAGE = format(
            'columns of unified_queue must not be null: %s',
            (SELECT string_agg(key, ', ' ORDER BY key)
               FROM jsonb_each_text(to_jsonb(given))
              WHERE value IS NULL
                AND key IN ('item_type', 'op', 'tenant_id', 'collection', 'priority', 'status',
                            'created_at', 'updated_at', 'idempotency_key', 'payload_json',
                            'retry_count', 'max_retries')));
    ELSIF given.item_type NOT IN ('content', 'file', 'folder', 'project', 'library',
                                  'delete_tenant', 'delete_document', 'rename') THEN
        RAISE check_violation USING CONSTRAINT = 'unified_queue_item_type_check',
            MESSAGE = format('%L is no item_type of unified_queue', given.item_type);
    ELSIF given.op NOT IN ('ingest', 'update', 'delete', 'scan') THEN
        RAISE check_violation USING CONSTRAINT = 'unified_queue_op_check',
            MESSAGE = format('%L is no op of unified_queue', given.op);
    ELSIF NOT (CASE WHEN given.item_type IN ('content', 'file', 'library')
                   THEN given.op IN ('ingest', 'update', 'delete')
                   WHEN given.item_type IN ('folder', 'project')
                   THEN given.op IN ('ingest', 'delete', 'scan')
                   WHEN given.item_type = 'rename' THEN given.op = 'update'
                   ELSE given.op = 'delete' END) THEN
        RAISE check_violation USING CONSTRAINT = 'unified_queue_check',
            MESSAGE = format('op %L is not for item_type %L', given.op, given.item_type);
    ELSIF given.priority NOT BETWEEN 0 AND 10 THEN
        RAISE check_violation USING CONSTRAINT = 'unified_queue_priority_check',
            MESSAGE = format('the priority is 0 to 10 in unified_queue, not %s', given.priority);
    ELSIF given.status NOT IN ('pending', 'in_progress', 'done', 'failed') THEN
        RAISE check_violation USING CONSTRAINT = 'unified_queue_status_check',
            MESSAGE = format('%L is no status of unified_queue', given.status);
    END IF;
END
$$;

-- Windrow's own jobs may have neither a tenant nor a collection; what is written here has both.
CREATE OR REPLACE FUNCTION windrow_dialect.check_unified_names(
    tenant_id text, collection text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF tenant_id = '' OR collection = '' THEN
        RAISE check_violation USING MESSAGE = format(
            '%s of unified_queue must not be empty',
            CASE WHEN tenant_id = '' THEN 'tenant_id' ELSE 'collection' END);
    END IF;
END
$$;

-- Whether an unfinished row has a key; two who bring the same one at once wait for each other.
CREATE OR REPLACE FUNCTION windrow_dialect.is_unified_key_taken(key text) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('windrow.unified_queue ' || key, 0));
    RETURN EXISTS (SELECT FROM windrow.job_live
                    WHERE queue = 'unified_queue'
                      AND coalesce(unique_key, 'windrow:' || id::text) = key);
END
$$;
CREATE OR REPLACE FUNCTION windrow_dialect.take_unified_key(key text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF windrow_dialect.is_unified_key_taken(key) THEN
        RAISE unique_violation USING CONSTRAINT = 'unified_queue_idempotency_key_key',
            MESSAGE = format('unified_queue has the idempotency_key %L already', key);
    END IF;
END
$$;

-- How long a lease until then is, in whole seconds; five minutes if it does not say.
CREATE OR REPLACE FUNCTION windrow_dialect.unified_seconds(lease_until text) RETURNS bigint
LANGUAGE sql STABLE AS $$
    SELECT coalesce(greatest(1, ceil(date_part('epoch',
               windrow_dialect.from_iso(lease_until) - statement_timestamp()))), 300)::bigint
$$;

CREATE OR REPLACE FUNCTION windrow_dialect.start_unified_job(
    job_id uuid, worker_id text, lease_until text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    seconds CONSTANT bigint := windrow_dialect.unified_seconds(lease_until);
    job windrow.job_live;
BEGIN
    job := windrow_dialect.claim_job(
        job_id, 'unified_queue:' || coalesce(worker_id, ''), seconds,
        windrow_dialect.from_iso(lease_until) - seconds * interval '1 second');
    UPDATE windrow.job_live SET started_at = statement_timestamp() WHERE id = job.id;
    RETURN job.id IS NOT NULL;
END
$$;

CREATE OR REPLACE FUNCTION windrow_dialect.insert_unified_row() RETURNS trigger
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    due CONSTANT timestamptz := windrow_dialect.from_iso(NEW.lease_until);
    job_id uuid;
BEGIN
    PERFORM windrow_dialect.check_unified_row(NEW);
    -- '' is the tenant of the session, where it acts for one.
    PERFORM windrow_dialect.check_unified_names(
        coalesce(nullif(NEW.tenant_id, ''), windrow.session_tenant(), ''), NEW.collection);
    IF NEW.queue_id IS NULL THEN
        RAISE not_null_violation USING MESSAGE = 'queue_id of unified_queue may not be null';
    ELSIF NEW.queue_id !~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' THEN
        RAISE invalid_text_representation USING
            MESSAGE = format('queue_id %L is no UUID in its usual spelling', NEW.queue_id);
    END IF;
    job_id := NEW.queue_id::uuid;
    IF EXISTS (SELECT FROM windrow.job WHERE id = job_id) THEN
        RAISE unique_violation USING CONSTRAINT = 'unified_queue_pkey',
            MESSAGE = format('unified_queue has the queue_id %s already', NEW.queue_id);
    END IF;
    PERFORM windrow_dialect.take_unified_key(NEW.idempotency_key);
    PERFORM windrow_dialect.insert_job(json_build_object(
        'id', job_id, 'queue', 'unified_queue', 'kind', NEW.item_type || '.' || NEW.op,
        'payload', NEW.payload_json::json,
        'headers', json_build_object('collection', NEW.collection, 'branch', NEW.branch,
                                     'metadata', NEW.metadata),
        'priority', NEW.priority, 'tenant', nullif(NEW.tenant_id, ''),
        'unique', NEW.idempotency_key,
        'run_at', CASE WHEN NEW.status = 'pending' AND due > statement_timestamp() THEN due END,
        'max_attempts', NEW.max_retries + 1, 'max_crashes', NEW.max_retries + 1,
        'created_at', windrow_dialect.from_iso(NEW.created_at)));
    UPDATE windrow.job_live SET attempts = NEW.retry_count, error = NEW.error_message
     WHERE id = job_id;
    IF NEW.status = 'in_progress' THEN
        PERFORM windrow_dialect.start_unified_job(job_id, NEW.worker_id, NEW.lease_until);
    ELSIF NEW.status IN ('done', 'failed') THEN
        PERFORM windrow_dialect.finish_job(
            job_id, CASE NEW.status WHEN 'done' THEN 'completed' ELSE 'failed' END,
            NEW.error_message);
    END IF;
    SELECT * INTO NEW FROM public.unified_queue AS there WHERE there.queue_id = NEW.queue_id;
    RETURN NEW;
END
$$;

-- What has ended is to wait again. One that was done begins anew, as if it had just been inserted.
CREATE OR REPLACE FUNCTION windrow_dialect.repeat_unified_job(job_id uuid) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    job windrow.job_finished;
    stored windrow.job_payload;
    key CONSTANT text := (SELECT unique_key FROM windrow.job_finished WHERE id = job_id);
BEGIN
    IF key IS NOT NULL AND windrow_dialect.is_unified_key_taken(key) THEN
        RETURN false;
    ELSIF windrow_dialect.retry_job(job_id) THEN
        RETURN true;
    END IF;
    SELECT * INTO job FROM windrow.job_finished
     WHERE id = job_id AND group_id IS NULL AND root_of IS NULL FOR UPDATE;
    IF job.id IS NULL
       OR EXISTS (SELECT FROM windrow.job_live WHERE unique_key = job.unique_key
                     AND tenant IS NOT DISTINCT FROM job.tenant) THEN
        RETURN false;
    END IF;
    SELECT * INTO stored FROM windrow.job_payload WHERE id = job_id;
    PERFORM windrow_dialect.delete_job(job_id);
    PERFORM windrow_dialect.insert_job(json_build_object(
        'id', job.id, 'queue', job.queue, 'kind', job.kind, 'payload', stored.payload,
        'headers', stored.headers, 'tags', stored.tags, 'priority', job.priority,
        'tenant', job.tenant, 'unique', job.unique_key, 'max_attempts', job.max_attempts,
        'max_crashes', job.max_crashes, 'lease_seconds', job.lease_seconds,
        'retention_seconds', job.retention_seconds, 'created_at', job.created_at));
    RETURN true;
END
$$;

-- What an update wants of a job in another status, or under another worker. False: it may not be.
CREATE OR REPLACE FUNCTION windrow_dialect.move_unified_job(
    old public.unified_queue, new public.unified_queue, job windrow.job_live)
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    held CONSTANT windrow.lease := (SELECT lease FROM windrow.lease
                                     WHERE token = job.lease AND job.state = 'active');
    is_over CONSTANT boolean := held.token IS NULL OR held.expires_at <= statement_timestamp();
    is_ours CONSTANT boolean := held.worker ^@ 'unified_queue:';
    -- What a lease left behind is no time to wait for.
    due CONSTANT timestamptz := greatest(
        CASE WHEN new.lease_until IS DISTINCT FROM old.lease_until
             THEN windrow_dialect.from_iso(new.lease_until) END,
        statement_timestamp());
BEGIN
    IF job.id IS NULL THEN
        RETURN new.status = 'pending'
           AND windrow_dialect.repeat_unified_job(old.queue_id::uuid)
           AND windrow_dialect.schedule_job(old.queue_id::uuid, due);
    ELSIF job.state = 'active' AND NOT (is_over OR is_ours) THEN
        RETURN false;
    ELSIF new.status = 'in_progress' THEN
        IF job.state = 'active' THEN
            IF NOT is_over THEN
                RETURN false;
            END IF;
            PERFORM windrow_dialect.return_job(job.id, statement_timestamp());
        END IF;
        RETURN windrow_dialect.may_start(job)
           AND windrow_dialect.start_unified_job(job.id, new.worker_id, new.lease_until);
    ELSIF new.status = 'pending' AND job.state = 'active' THEN
        RETURN windrow_dialect.return_job(job.id, due) IS NOT NULL;
    ELSIF new.status = 'pending' THEN
        RETURN job.state = 'paused' AND windrow_dialect.make_ready(job.id);
    ELSIF job.state NOT IN ('active', 'ready', 'scheduled') THEN
        RETURN false;
    END IF;
    IF held.token IS NOT NULL THEN
        UPDATE windrow.job_payload
           SET headers = coalesce(headers::jsonb, '{}')
                         || jsonb_build_object('unified_queue_worker_id', new.worker_id)
         WHERE id = job.id;
    END IF;
    RETURN windrow_dialect.finish_job(
        job.id, CASE new.status WHEN 'done' THEN 'completed' ELSE 'failed' END, new.error_message);
END
$$;

CREATE OR REPLACE FUNCTION windrow_dialect.update_unified_row() RETURNS trigger
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    job_id CONSTANT uuid := OLD.queue_id;
    job CONSTANT windrow.job_live := windrow_dialect.lock_job(job_id);
    now_there public.unified_queue;
    was_there public.unified_queue := OLD;
    seconds CONSTANT bigint := windrow_dialect.unified_seconds(NEW.lease_until);
BEGIN
    IF NEW.queue_id IS DISTINCT FROM OLD.queue_id THEN
        RAISE feature_not_supported USING MESSAGE = 'queue_id cannot be changed';
    END IF;
    PERFORM windrow_dialect.check_unified_row(NEW);
    PERFORM windrow_dialect.check_unified_names(
        nullif(NEW.tenant_id, OLD.tenant_id), nullif(NEW.collection, OLD.collection));
    SELECT * INTO now_there FROM public.unified_queue AS there WHERE there.queue_id = OLD.queue_id;
    -- An explicit failure takes precedence over a rescue that committed meanwhile, by hand as well: that
    -- counts no retry.
    IF NEW.status = 'failed' AND OLD.status = 'in_progress' AND now_there.status = 'pending'
       AND (now_there.retry_count = OLD.retry_count + 1
            OR (now_there.retry_count = OLD.retry_count
                AND windrow_dialect.from_iso(OLD.lease_until) < statement_timestamp())) THEN
        NEW := jsonb_populate_record(now_there, windrow_dialect.carry_over(
                   to_jsonb(OLD), to_jsonb(NEW), to_jsonb(now_there)));
        OLD := now_there;
        was_there := now_there;
    END IF;
    -- Who renews a lease does not keep its worker from its other writes; but what was found stale and has
    -- been renewed since is not to be taken.
    IF NEW.status <> 'done' AND now_there.lease_until IS DISTINCT FROM OLD.lease_until
       AND windrow_dialect.from_iso(OLD.lease_until) < statement_timestamp() THEN
        RETURN NULL;
    END IF;
    was_there.lease_until := now_there.lease_until;
    was_there.updated_at := now_there.updated_at;
    IF now_there IS DISTINCT FROM was_there THEN
        RETURN NULL;
    END IF;

    IF NEW.status <> OLD.status
       OR (NEW.status = 'in_progress' AND NEW.worker_id IS DISTINCT FROM OLD.worker_id) THEN
        IF NOT windrow_dialect.move_unified_job(OLD, NEW, job) THEN
            RETURN NULL;
        END IF;
    ELSIF NEW.lease_until IS DISTINCT FROM OLD.lease_until THEN
        IF job.state = 'active' THEN
            IF NOT EXISTS (SELECT FROM windrow.lease
                            WHERE token = job.lease AND worker ^@ 'unified_queue:') THEN
                RETURN NULL;
            END IF;
            PERFORM windrow_dialect.renew_job(
                job_id, coalesce(windrow_dialect.from_iso(NEW.lease_until)
                                 - seconds * interval '1 second', statement_timestamp()), seconds);
        ELSIF job.state IN ('ready', 'scheduled') THEN
            PERFORM windrow_dialect.schedule_job(
                job_id, greatest(windrow_dialect.from_iso(NEW.lease_until), statement_timestamp()));
        END IF;
    END IF;

    IF NEW.idempotency_key <> OLD.idempotency_key THEN
        PERFORM windrow_dialect.take_unified_key(NEW.idempotency_key);
    END IF;
    -- Twice: it is live, or has ended by now.
    UPDATE windrow.job_live AS live
       SET kind = NEW.item_type || '.' || NEW.op,
           tenant = nullif(NEW.tenant_id, ''),
           priority = NEW.priority,
           unique_key = CASE WHEN NEW.idempotency_key = OLD.idempotency_key THEN live.unique_key
                             ELSE NEW.idempotency_key END,
           error = NEW.error_message,
           created_at = CASE WHEN NEW.created_at IS NOT DISTINCT FROM OLD.created_at
                             THEN live.created_at
                             ELSE windrow_dialect.from_iso(NEW.created_at) END,
           max_attempts = CASE WHEN NEW.max_retries = OLD.max_retries THEN live.max_attempts
                               ELSE NEW.max_retries + 1 END,
           max_crashes = CASE WHEN NEW.max_retries = OLD.max_retries THEN live.max_crashes
                              ELSE NEW.max_retries + 1 END,
           crashes = CASE WHEN NEW.retry_count = OLD.retry_count THEN live.crashes
                          ELSE least(live.crashes, NEW.retry_count) END,
           attempts = CASE WHEN NEW.retry_count = OLD.retry_count THEN live.attempts
                           ELSE greatest(NEW.retry_count - live.crashes, 0) END
     WHERE live.id = job_id
       AND (NEW.item_type, NEW.op, NEW.tenant_id, NEW.priority, NEW.idempotency_key,
            NEW.error_message, NEW.created_at, NEW.max_retries, NEW.retry_count)
           IS DISTINCT FROM
           (OLD.item_type, OLD.op, OLD.tenant_id, OLD.priority, OLD.idempotency_key,
            OLD.error_message, OLD.created_at, OLD.max_retries, OLD.retry_count);
    UPDATE windrow.job_finished AS finished
       SET kind = NEW.item_type || '.' || NEW.op,
           tenant = nullif(NEW.tenant_id, ''),
           priority = NEW.priority,
           error = NEW.error_message,
           attempts = CASE WHEN NEW.retry_count = OLD.retry_count THEN finished.attempts
                           ELSE greatest(NEW.retry_count - finished.crashes, 0) END
     WHERE finished.id = job_id
       AND (NEW.item_type, NEW.op, NEW.tenant_id, NEW.priority, NEW.error_message, NEW.retry_count)
           IS DISTINCT FROM (OLD.item_type, OLD.op, OLD.tenant_id, OLD.priority, finished.error,
                             OLD.retry_count);
    IF NEW.error_message IS DISTINCT FROM OLD.error_message AND NEW.error_message IS NOT NULL
       AND NOT (NEW.status = 'failed' AND OLD.status <> 'failed') THEN
        PERFORM windrow_dialect.note_error(job_id, 'attempt', NEW.error_message);
    END IF;
    IF NEW.last_error_at IS DISTINCT FROM OLD.last_error_at AND NEW.last_error_at IS NOT NULL THEN
        UPDATE windrow.job_error SET at = windrow_dialect.from_iso(NEW.last_error_at)
         WHERE job_error.job_id = OLD.queue_id::uuid
           AND place = (SELECT max(place) FROM windrow.job_error AS error
                         WHERE error.job_id = OLD.queue_id::uuid);
    END IF;
    UPDATE windrow.job_payload AS stored
       SET payload = CASE WHEN NEW.payload_json = OLD.payload_json THEN stored.payload
                          ELSE NEW.payload_json::json END,
           headers = coalesce(stored.headers::jsonb, '{}') || jsonb_build_object(
                         'collection', NEW.collection, 'branch', NEW.branch,
                         'metadata', NEW.metadata)
     WHERE stored.id = job_id
       AND (NEW.payload_json, NEW.collection, NEW.branch, NEW.metadata)
           IS DISTINCT FROM (OLD.payload_json, OLD.collection, OLD.branch, OLD.metadata);
    SELECT * INTO NEW FROM public.unified_queue AS there WHERE there.queue_id = OLD.queue_id;
    RETURN NEW;
END
$$;

CREATE OR REPLACE FUNCTION windrow_dialect.delete_unified_row() RETURNS trigger
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    job CONSTANT windrow.job_live := windrow_dialect.lock_job(OLD.queue_id::uuid);
    now_there public.unified_queue;
BEGIN
    SELECT * INTO now_there FROM public.unified_queue AS there WHERE there.queue_id = OLD.queue_id;
    IF now_there IS DISTINCT FROM OLD
       OR job.state = 'waiting'
       OR EXISTS (SELECT FROM windrow.lease
                   WHERE token = job.lease AND job.state = 'active'
                     AND NOT worker ^@ 'unified_queue:' AND expires_at > statement_timestamp())
       OR NOT windrow_dialect.delete_job(OLD.queue_id::uuid) THEN
        RETURN NULL;
    END IF;
    RETURN OLD;
END
$$;

CREATE OR REPLACE TRIGGER unified_queue_insert INSTEAD OF INSERT ON public.unified_queue
    FOR EACH ROW EXECUTE FUNCTION windrow_dialect.insert_unified_row();
CREATE OR REPLACE TRIGGER unified_queue_update INSTEAD OF UPDATE ON public.unified_queue
    FOR EACH ROW EXECUTE FUNCTION windrow_dialect.update_unified_row();
CREATE OR REPLACE TRIGGER unified_queue_delete INSTEAD OF DELETE ON public.unified_queue
    FOR EACH ROW EXECUTE FUNCTION windrow_dialect.delete_unified_row();
-- Of earlier versions.
DROP TRIGGER IF EXISTS unified_queue_tend ON public.unified_queue;
DROP FUNCTION IF EXISTS windrow_dialect.tend_unified_queue();
