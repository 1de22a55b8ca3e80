-- The dialect processing_jobs: a jobs table for polling workers, over the queue "processing_jobs".
--
--   theirs         ours
--   id             id
--   org_id         tenant (one that is no UUID: by UUIDv5); that of the session if it is not given
--   call_id        headers.call_id, else payload.call_id
--   stage          kind; of Windrow's own calls the part after "call."
--   status         queued: ready, scheduled, or active under a lease that is over
--                  processing: active, waiting · done: completed · failed: failed, or crashed too often
--                  held, paused, cancelled: as here; no claim takes them
--   payload        payload
--   attempts       attempts + crashes: a run that died counts as one that failed
--   max_attempts   max_attempts, and max_crashes
--   available_at   run_at
--   locked_at      since when the lease runs; writing it renews or ages the lease. Later: started_at
--   locked_by      the worker of the lease, written there as "processing_jobs:<name>"
--   last_error     error, with the whole text in the history
--   created_at     created_at
--   updated_at     the latest of created_at, started_at and finished_at; not written
--
-- A lease is as long as the job's own lease_seconds, else 600 s: `update … set locked_at = now()` renews
-- it. A claim by the printed statement needs nobody else: whether a lease is over is seen by the view.
-- Order of claims: available_at. Priorities are for Windrow's workers. A row that one of them runs is
-- locked: no statement changes it.

CREATE OR REPLACE VIEW public.processing_jobs WITH (security_invoker = true) AS
SELECT job.id,
       windrow_dialect.as_uuid(job.tenant) AS org_id,
       windrow_dialect.as_uuid((
           SELECT coalesce(stored.headers ->> 'call_id', stored.payload ->> 'call_id')
             FROM windrow.job_payload AS stored WHERE stored.id = job.id)) AS call_id,
       CASE WHEN starts_with(job.kind, 'call.') THEN substr(job.kind, 6) ELSE job.kind END AS stage,
       CASE WHEN job.state IN ('ready', 'scheduled') THEN 'queued'
            WHEN job.state = 'active' THEN
                CASE WHEN NOT windrow_dialect.is_over(job.lease) THEN 'processing'
                     WHEN job.stop_as IS NOT NULL THEN job.stop_as
                     WHEN job.crashes + 1 >= job.max_crashes THEN 'failed'
                     ELSE 'queued' END
            WHEN job.state = 'waiting' THEN 'processing'
            WHEN job.state = 'completed' THEN 'done'
            ELSE job.state END AS status,
       (SELECT windrow_dialect.as_jsonb(stored.payload)
          FROM windrow.job_payload AS stored WHERE stored.id = job.id) AS payload,
       job.attempts + job.crashes
       + CASE WHEN job.state = 'active' AND windrow_dialect.is_over(job.lease) THEN 1 ELSE 0 END
           AS attempts,
       job.max_attempts,
       job.run_at AS available_at,
       CASE WHEN job.state = 'active'
            THEN (SELECT held.claimed_at FROM windrow.lease AS held WHERE held.token = job.lease)
            ELSE job.started_at END AS locked_at,
       CASE WHEN job.state = 'active'
            THEN (SELECT CASE WHEN starts_with(held.worker, 'processing_jobs:')
                              THEN nullif(substr(held.worker, 17), '')
                              ELSE held.worker END
                    FROM windrow.lease AS held WHERE held.token = job.lease) END AS locked_by,
       job.error AS last_error,
       job.created_at,
       greatest(job.created_at, job.started_at, job.finished_at) AS updated_at
  FROM windrow.job AS job
 WHERE job.queue = 'processing_jobs';

ALTER VIEW public.processing_jobs ALTER COLUMN id SET DEFAULT gen_random_uuid();
ALTER VIEW public.processing_jobs ALTER COLUMN payload SET DEFAULT '{}'::jsonb;
ALTER VIEW public.processing_jobs ALTER COLUMN attempts SET DEFAULT 0;
ALTER VIEW public.processing_jobs ALTER COLUMN max_attempts SET DEFAULT 5;
ALTER VIEW public.processing_jobs ALTER COLUMN available_at SET DEFAULT now();
ALTER VIEW public.processing_jobs ALTER COLUMN created_at SET DEFAULT now();
ALTER VIEW public.processing_jobs ALTER COLUMN updated_at SET DEFAULT now();

-- In place of (status, available_at): a claim goes through live jobs in the order they are due. Finished
-- ones are left out by the CHECK, whose CASE is the view's.
-- IS NOT NULL, which is always so, keeps these indexes for those who filter by their column: a plan
-- that was made while the queue was empty would also go through one of them to find a row by its id.
CREATE INDEX IF NOT EXISTS processing_jobs_ready_idx ON windrow.job_live (run_at)
    WHERE queue = 'processing_jobs' AND run_at IS NOT NULL;
CREATE INDEX IF NOT EXISTS processing_jobs_org_idx ON windrow.job_live
    (windrow_dialect.as_uuid(tenant))
    WHERE queue = 'processing_jobs' AND windrow_dialect.as_uuid(tenant) IS NOT NULL;
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_catalog.pg_constraint
                    WHERE conname = 'processing_jobs_status'
                      AND conrelid = 'windrow.job_finished'::regclass) THEN
        ALTER TABLE windrow.job_finished ADD CONSTRAINT processing_jobs_status CHECK (
            CASE WHEN state IN ('ready', 'scheduled') THEN 'queued'
                 WHEN state = 'active' THEN
                     CASE WHEN NOT windrow_dialect.is_over(lease) THEN 'processing'
                          WHEN stop_as IS NOT NULL THEN stop_as
                          WHEN crashes + 1 >= max_crashes THEN 'failed'
                          ELSE 'queued' END
                 WHEN state = 'waiting' THEN 'processing'
                 WHEN state = 'completed' THEN 'done'
                 ELSE state END IN ('done', 'failed', 'cancelled'));
    END IF;
END
$$;

-- The document's own script, run again by a program that starts: `create index if not exists … on
-- processing_jobs`. Postgres refuses it on a view before it looks for the name, so an empty temporary
-- table has that name while the command runs. Only superusers may make event triggers: where the
-- dialect was installed by anybody else, the command is refused.
CREATE OR REPLACE FUNCTION windrow_dialect.processing_jobs_index() RETURNS event_trigger
LANGUAGE plpgsql AS $$
BEGIN
    IF TG_EVENT = 'ddl_command_end' THEN
        IF current_setting('windrow_dialect.stands_in', true) = 'processing_jobs' THEN
            DROP TABLE pg_temp.processing_jobs;
            PERFORM set_config('windrow_dialect.stands_in', '', true);
        END IF;
    ELSIF current_query() ~* '\mcreate\s+index\s+(concurrently\s+)?if\s+not\s+exists\s+\S+\s+on\s+"?processing_jobs\M'
          AND EXISTS (SELECT FROM pg_catalog.pg_class
                       WHERE oid = to_regclass('processing_jobs') AND relkind = 'v'
                         AND relnamespace = 'public'::regnamespace) THEN
        CREATE TEMPORARY TABLE processing_jobs (LIKE public.processing_jobs) ON COMMIT DROP;
        PERFORM set_config('windrow_dialect.stands_in', 'processing_jobs', true);
        RAISE NOTICE 'processing_jobs is a view of Windrow, whose indexes come with it: none was made';
    END IF;
END
$$;
DO $$
BEGIN
    -- Superusers run it too, so it must be nobody's who could write into it what he may not do.
    IF 'windrow_dialect.processing_jobs_index'::regproc NOT IN (
           SELECT oid FROM pg_catalog.pg_proc WHERE proowner = current_user::regrole) THEN
        RETURN;
    END IF;
    CREATE EVENT TRIGGER windrow_processing_jobs_index ON ddl_command_start
        WHEN TAG IN ('CREATE INDEX')
        EXECUTE FUNCTION windrow_dialect.processing_jobs_index();
    CREATE EVENT TRIGGER windrow_processing_jobs_indexed ON ddl_command_end
        WHEN TAG IN ('CREATE INDEX')
        EXECUTE FUNCTION windrow_dialect.processing_jobs_index();
EXCEPTION WHEN duplicate_object OR insufficient_privilege THEN NULL;
END
$$;

CREATE OR REPLACE FUNCTION windrow_dialect.processing_jobs_insert() RETURNS trigger
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    job windrow.job_live;
BEGIN
    NEW.org_id := coalesce(NEW.org_id, windrow_dialect.as_uuid(windrow.session_tenant()));
    IF NEW.org_id IS NULL OR NEW.call_id IS NULL OR NEW.stage IS NULL OR NEW.status IS NULL THEN
        RAISE not_null_violation
            USING MESSAGE = 'org_id, call_id, stage and status of processing_jobs must not be null';
    END IF;
    IF NEW.created_at IS NULL OR NEW.updated_at IS NULL OR NEW.available_at IS NULL
       OR NEW.payload IS NULL OR NEW.attempts IS NULL OR NEW.max_attempts IS NULL THEN
        RAISE not_null_violation USING MESSAGE = 'payload, attempts, max_attempts, available_at, '
            'created_at and updated_at of processing_jobs must not be null';
    END IF;
    IF NEW.status NOT IN ('queued', 'processing', 'done', 'failed') THEN
        RAISE check_violation
            USING MESSAGE = format('status %L is none of queued, processing, done, failed',
                                   NEW.status);
    END IF;
    NEW.id := coalesce(NEW.id, windrow_dialect.new_id());
    IF EXISTS (SELECT FROM windrow.job_finished AS former WHERE former.id = NEW.id) THEN
        RAISE unique_violation USING MESSAGE = format('processing_jobs has the id %s', NEW.id);
    END IF;
    job := windrow_dialect.insert_job(json_build_object(
        'id', NEW.id, 'queue', 'processing_jobs', 'kind', NEW.stage, 'tenant', NEW.org_id,
        'payload', NEW.payload, 'headers', json_build_object('call_id', NEW.call_id),
        'max_attempts', NEW.max_attempts, 'max_crashes', greatest(NEW.max_attempts, 1),
        'run_at', NEW.available_at, 'created_at', NEW.created_at));
    IF NEW.attempts <> 0 OR NEW.last_error IS NOT NULL THEN
        UPDATE windrow.job_live
           SET attempts = NEW.attempts, error = windrow_dialect.short_error(NEW.last_error)
         WHERE job_live.id = NEW.id;
    END IF;
    CASE NEW.status
        WHEN 'processing' THEN
            PERFORM windrow_dialect.claim_job(
                NEW.id, 'processing_jobs:' || coalesce(NEW.locked_by, ''), 600, NEW.locked_at);
        WHEN 'done' THEN
            PERFORM windrow_dialect.finish_job(NEW.id, 'completed');
        WHEN 'failed' THEN
            PERFORM windrow_dialect.finish_job(NEW.id, 'failed', NEW.last_error);
        ELSE NULL;
    END CASE;
    RETURN NEW;
END
$$;

CREATE OR REPLACE FUNCTION windrow_dialect.processing_jobs_update() RETURNS trigger
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    job windrow.job_live := windrow_dialect.lock_job(OLD.id);
    shown public.processing_jobs;
    is_failure CONSTANT boolean := NEW.attempts > OLD.attempts;
    after text;
BEGIN
    IF NEW.id IS DISTINCT FROM OLD.id THEN
        RAISE feature_not_supported USING MESSAGE = 'the id of a processing job cannot be changed';
    ELSIF num_nulls(NEW.org_id, NEW.call_id, NEW.stage, NEW.status, NEW.payload, NEW.attempts,
                    NEW.max_attempts, NEW.available_at, NEW.created_at, NEW.updated_at)
          > num_nulls(OLD.org_id, OLD.call_id, OLD.stage, OLD.status, OLD.payload, OLD.attempts,
                      OLD.max_attempts, OLD.available_at, OLD.created_at, OLD.updated_at) THEN
        RAISE not_null_violation USING MESSAGE = 'org_id, call_id, stage, status, payload, attempts, '
            'max_attempts, available_at, created_at and updated_at of processing_jobs must not be null';
    END IF;
    IF job.id IS NULL THEN
        PERFORM windrow_dialect.lock_finished(ids => ARRAY[OLD.id]);
    END IF;
    -- What the statement saw may be older than what it waited for.
    SELECT * INTO shown FROM public.processing_jobs AS one WHERE one.id = OLD.id;
    IF shown.status = 'processing' AND shown.locked_by = OLD.locked_by THEN
        -- The same run: its worker renewed the lock meanwhile. A later run has another attempt.
        shown.locked_at := OLD.locked_at;
        shown.updated_at := OLD.updated_at;
    END IF;
    -- An explicit end takes precedence over a rescue that committed meanwhile.
    IF NEW.status IN ('failed', 'cancelled') AND shown.status = 'queued'
       AND OLD.locked_by IS NOT NULL AND shown.locked_by IS NULL
       AND shown.attempts = OLD.attempts + (OLD.status = 'processing')::integer THEN
        NEW := jsonb_populate_record(shown, windrow_dialect.carry_over(
                   to_jsonb(OLD), to_jsonb(NEW), to_jsonb(shown)));
        OLD := shown;
    END IF;
    IF shown IS DISTINCT FROM OLD THEN
        RETURN NULL;
    END IF;
    -- The view shows a run whose lease is over as what the rescue makes of it. Whatever leaves the row
    -- to be done rescues it first, so that its crash counts.
    IF job.state = 'active' AND NEW.status IN ('queued', 'processing', 'failed')
       AND windrow_dialect.rescue_job(OLD.id) IS NOT NULL THEN
        job := windrow_dialect.lock_job(OLD.id);
    END IF;
    IF job.id IS NULL THEN
        -- Of a finished row only a retry is taken: a late failure must not run it once more.
        IF NEW.status = OLD.status THEN
            RETURN OLD;
        ELSIF NEW.status <> 'queued' OR is_failure OR NOT windrow_dialect.retry_job(OLD.id) THEN
            RETURN NULL;
        END IF;
        job := windrow_dialect.lock_job(OLD.id);
        PERFORM windrow_dialect.processing_jobs_edit(job, OLD, NEW);
        UPDATE windrow.job_live SET attempts = NEW.attempts WHERE job_live.id = OLD.id;
        RETURN NEW;
    END IF;
    IF job.state = 'waiting' THEN
        -- It is done, and waits for its group.
        RETURN CASE WHEN NEW.status IN ('processing', 'done') THEN OLD END;
    ELSIF NEW.status = 'queued' AND OLD.status IN ('held', 'paused')
          AND NOT windrow_dialect.make_ready(OLD.id) THEN
        RETURN NULL;
    END IF;
    -- A worker of Windrow that runs it has a token, and nobody else may end its run.
    IF OLD.status = 'processing' AND EXISTS (
           SELECT FROM windrow.lease
            WHERE token = job.lease AND NOT starts_with(worker, 'processing_jobs:')) THEN
        RETURN NULL;
    END IF;
    IF NEW.status = 'processing' AND OLD.status <> 'processing' THEN
        IF NOT windrow_dialect.may_start(job) THEN
            RETURN NULL;
        END IF;
        job := windrow_dialect.claim_job(
            OLD.id, 'processing_jobs:' || coalesce(NEW.locked_by, ''),
            coalesce(job.lease_seconds, 600),
            CASE WHEN NEW.locked_at IS DISTINCT FROM OLD.locked_at THEN NEW.locked_at END);
        IF job.id IS NULL THEN
            RETURN NULL;
        END IF;
        OLD.attempts := NEW.attempts;
        NEW.available_at := OLD.available_at;
    ELSIF NEW.status = 'queued' AND job.state = 'active' THEN
        after := windrow_dialect.return_job(
            OLD.id,
            CASE WHEN NEW.available_at IS DISTINCT FROM OLD.available_at THEN NEW.available_at
                 ELSE statement_timestamp() END,
            CASE WHEN is_failure OR NEW.last_error IS DISTINCT FROM OLD.last_error
                 THEN NEW.last_error END,
            is_failure);
        IF after NOT IN ('ready', 'scheduled') THEN
            NEW.status := after;
        END IF;
        IF after = 'cancelled' THEN
            RETURN NEW;
        END IF;
        OLD.status := NEW.status;
        OLD.attempts := NEW.attempts;
        OLD.last_error := NEW.last_error;
        OLD.available_at := NEW.available_at;
    END IF;
    PERFORM windrow_dialect.processing_jobs_edit(job, OLD, NEW);
    IF NEW.status = 'done' THEN
        PERFORM windrow_dialect.finish_job(OLD.id, 'completed');
    ELSIF NEW.status = 'failed' AND OLD.status <> 'failed' THEN
        PERFORM windrow_dialect.finish_job(
            OLD.id, 'failed', NEW.last_error, uses_attempt => is_failure);
    ELSIF NEW.status = 'cancelled' AND OLD.status <> 'cancelled' THEN
        PERFORM windrow_dialect.finish_job(OLD.id, 'cancelled', 'cancelled');
    ELSIF NEW.status <> OLD.status AND NEW.status NOT IN ('queued', 'processing') THEN
        RAISE check_violation
            USING MESSAGE = format('status %L is none of queued, processing, done, failed',
                                   NEW.status);
    END IF;
    RETURN NEW;
END
$$;

-- Write the other columns of a live row, as far as the statement changed them.
CREATE OR REPLACE FUNCTION windrow_dialect.processing_jobs_edit(
    job windrow.job_live, before public.processing_jobs, after public.processing_jobs)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    is_ending CONSTANT boolean := after.status IN ('done', 'failed', 'cancelled');
    step CONSTANT integer := CASE WHEN is_ending THEN 0 ELSE after.attempts - before.attempts END;
BEGIN
    IF (after.org_id, after.stage, after.max_attempts, after.created_at)
       IS DISTINCT FROM (before.org_id, before.stage, before.max_attempts, before.created_at)
       OR step <> 0 OR (after.last_error IS DISTINCT FROM before.last_error AND NOT is_ending) THEN
        UPDATE windrow.job_live
           SET tenant = CASE WHEN after.org_id IS DISTINCT FROM before.org_id
                             THEN after.org_id::text ELSE job_live.tenant END,
               kind = CASE WHEN after.stage IS DISTINCT FROM before.stage
                           THEN after.stage ELSE job_live.kind END,
               max_attempts = after.max_attempts,
               max_crashes = CASE WHEN after.max_attempts <> before.max_attempts
                                  THEN greatest(after.max_attempts, 1)
                                  ELSE job_live.max_crashes END,
               created_at = after.created_at,
               attempts = greatest(job_live.attempts + step, 0),
               -- What attempts cannot take back is taken from crashes.
               crashes = greatest(job_live.crashes + least(job_live.attempts + step, 0), 0),
               error = CASE WHEN after.last_error IS DISTINCT FROM before.last_error
                            THEN windrow_dialect.short_error(after.last_error)
                            ELSE job_live.error END
         WHERE job_live.id = job.id;
    END IF;
    IF after.payload IS DISTINCT FROM before.payload THEN
        UPDATE windrow.job_payload SET payload = coalesce(after.payload, '{}')::json
         WHERE job_payload.id = job.id;
    END IF;
    IF after.call_id IS DISTINCT FROM before.call_id THEN
        UPDATE windrow.job_payload
           SET headers = coalesce(job_payload.headers::jsonb, '{}')
                         || jsonb_build_object('call_id', after.call_id)
         WHERE job_payload.id = job.id;
    END IF;
    IF after.available_at IS DISTINCT FROM before.available_at THEN
        IF NOT windrow_dialect.schedule_job(job.id, after.available_at) THEN
            UPDATE windrow.job_live SET run_at = after.available_at WHERE job_live.id = job.id;
        END IF;
    END IF;
    IF before.status = 'processing' AND after.status = 'processing'
       AND (after.locked_at, after.locked_by)
           IS DISTINCT FROM (before.locked_at, before.locked_by) THEN
        PERFORM windrow_dialect.renew_job(
            job.id, coalesce(after.locked_at, statement_timestamp()),
            worker => CASE WHEN after.locked_by IS DISTINCT FROM before.locked_by
                           THEN 'processing_jobs:' || coalesce(after.locked_by, '') END);
    END IF;
END
$$;

CREATE OR REPLACE FUNCTION windrow_dialect.processing_jobs_delete() RETURNS trigger
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    job CONSTANT windrow.job_live := windrow_dialect.lock_job(OLD.id);
    shown public.processing_jobs;
BEGIN
    IF job.id IS NULL THEN
        PERFORM windrow_dialect.lock_finished(ids => ARRAY[OLD.id]);
    END IF;
    SELECT * INTO shown FROM public.processing_jobs AS one WHERE one.id = OLD.id;
    IF shown IS DISTINCT FROM OLD OR NOT windrow_dialect.delete_job(OLD.id) THEN
        RETURN NULL;
    END IF;
    RETURN OLD;
END
$$;

CREATE OR REPLACE TRIGGER processing_jobs_insert INSTEAD OF INSERT ON public.processing_jobs
    FOR EACH ROW EXECUTE FUNCTION windrow_dialect.processing_jobs_insert();
CREATE OR REPLACE TRIGGER processing_jobs_update INSTEAD OF UPDATE ON public.processing_jobs
    FOR EACH ROW EXECUTE FUNCTION windrow_dialect.processing_jobs_update();
CREATE OR REPLACE TRIGGER processing_jobs_delete INSTEAD OF DELETE ON public.processing_jobs
    FOR EACH ROW EXECUTE FUNCTION windrow_dialect.processing_jobs_delete();
