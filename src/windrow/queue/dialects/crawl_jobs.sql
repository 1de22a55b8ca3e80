-- The dialect `crawl_jobs`: a table of crawl requests, polled by workers, as a view over the one queue.
--
-- It shows the jobs of the queue `crawl_jobs`, whoever inserted them; what is inserted through it has
-- the kind `crawl`.
--
--   id, created_at, started_at    the same
--   payload                       payload
--   priority                      priority: higher first on both sides
--   status                        pending: ready · processing: active, waiting · completed, failed,
--                                 cancelled, paused: the same. scheduled and held are shown as paused,
--                                 because they cannot be claimed yet; a running job that was asked to
--                                 stop as what it was asked to become
--   worker_id                     worker of the lease, there with crawl_jobs: before it; that of a Windrow
--                                 worker by UUIDv5. After the end: the header crawl_jobs_worker_id
--   progress_percentage           percent of the progress; never goes back
--   completed_at                  finished_at, of failed and cancelled jobs too
--   last_heartbeat                two minutes before the lease ends, whatever its length: the printed
--                                 reaper, which takes what was silent for so long, takes leases that are
--                                 over and no others. After the end: the header crawl_jobs_last_heartbeat
--   retry_count                   attempts + crashes
--   max_retries                   max_attempts - 1, max_crashes - 1
--   error_message                 error
--   source_id                     the header source_id
--   user_id                       tenant; one that is no UUID by UUIDv5
--
-- A run that a Windrow worker holds can be asked to stop from here (cancelled, paused), but neither ended
-- nor taken; nor can a run of another worker be taken before it is over: such an update changes nothing.

DO $$
BEGIN
    CREATE TYPE public.job_status AS ENUM
        ('pending', 'processing', 'completed', 'failed', 'cancelled', 'paused');
EXCEPTION WHEN duplicate_object THEN NULL;
END $$;

CREATE OR REPLACE VIEW public.crawl_jobs WITH (security_invoker = true) AS
SELECT job.id,
       (SELECT windrow_dialect.as_jsonb(stored.payload)
          FROM windrow.job_payload AS stored WHERE stored.id = job.id) AS payload,
       job.priority,
       CASE WHEN job.state = 'ready' THEN 'pending'::public.job_status
            WHEN job.state = 'active' AND job.stop_as = 'cancelled' THEN 'cancelled'
            WHEN job.state = 'active' AND job.stop_as = 'paused' THEN 'paused'
            WHEN job.state IN ('active', 'waiting') THEN 'processing'
            WHEN job.state = 'completed' THEN 'completed'
            WHEN job.state = 'failed' THEN 'failed'
            WHEN job.state = 'cancelled' THEN 'cancelled'
            ELSE 'paused' END AS status,
       windrow_dialect.as_uuid(
           CASE WHEN job.state = 'active'
                THEN (SELECT regexp_replace(lease.worker, '^crawl_jobs:', '')
                        FROM windrow.lease WHERE lease.token = job.lease AND lease.worker <> 'crawl_jobs:')
                WHEN job.state IN ('completed', 'failed', 'cancelled')
                THEN (SELECT stored.headers ->> 'crawl_jobs_worker_id'
                        FROM windrow.job_payload AS stored WHERE stored.id = job.id) END) AS worker_id,
       coalesce((SELECT progress.percent FROM windrow.job_progress AS progress
                  WHERE progress.id = job.id), 0) AS progress_percentage,
       job.created_at,
       job.started_at,
       job.finished_at AS completed_at,
       CASE WHEN job.state = 'active'
            THEN (SELECT lease.expires_at - interval '120 seconds'
                    FROM windrow.lease WHERE lease.token = job.lease)
            WHEN job.state IN ('completed', 'failed', 'cancelled')
            THEN (SELECT (stored.headers ->> 'crawl_jobs_last_heartbeat')::timestamptz
                    FROM windrow.job_payload AS stored WHERE stored.id = job.id)
       END AS last_heartbeat,
       job.attempts + job.crashes AS retry_count,
       job.max_attempts - 1 AS max_retries,
       job.error AS error_message,
       (SELECT stored.headers ->> 'source_id'
          FROM windrow.job_payload AS stored WHERE stored.id = job.id) AS source_id,
       windrow_dialect.as_uuid(job.tenant) AS user_id
  FROM windrow.job
 WHERE job.queue = 'crawl_jobs';

ALTER VIEW public.crawl_jobs ALTER COLUMN id SET DEFAULT gen_random_uuid();
ALTER VIEW public.crawl_jobs ALTER COLUMN priority SET DEFAULT 0;
ALTER VIEW public.crawl_jobs ALTER COLUMN status SET DEFAULT 'pending';
ALTER VIEW public.crawl_jobs ALTER COLUMN progress_percentage SET DEFAULT 0;
ALTER VIEW public.crawl_jobs ALTER COLUMN created_at SET DEFAULT now();
ALTER VIEW public.crawl_jobs ALTER COLUMN retry_count SET DEFAULT 0;
ALTER VIEW public.crawl_jobs ALTER COLUMN max_retries SET DEFAULT 3;

-- The expression is that of the view, to the letter: the planner knows it by nothing else. This one
-- stands for idx_crawl_jobs_status_priority and, because few jobs run at a time, for
-- idx_crawl_jobs_worker_heartbeat too.
-- Each index asks that its expression is not null, which is always so: else a plan that was made while
-- the queue was empty may go through all of one of them to find a row by its id.
CREATE INDEX IF NOT EXISTS crawl_jobs_live ON windrow.job_live (
    (CASE WHEN state = 'ready' THEN 'pending'::public.job_status
          WHEN state = 'active' AND stop_as = 'cancelled' THEN 'cancelled'
          WHEN state = 'active' AND stop_as = 'paused' THEN 'paused'
          WHEN state IN ('active', 'waiting') THEN 'processing'
          WHEN state = 'completed' THEN 'completed'
          WHEN state = 'failed' THEN 'failed'
          WHEN state = 'cancelled' THEN 'cancelled'
          ELSE 'paused' END), priority DESC, created_at)
    WHERE queue = 'crawl_jobs'
      AND (CASE WHEN state = 'ready' THEN 'pending'::public.job_status
          WHEN state = 'active' AND stop_as = 'cancelled' THEN 'cancelled'
          WHEN state = 'active' AND stop_as = 'paused' THEN 'paused'
          WHEN state IN ('active', 'waiting') THEN 'processing'
          WHEN state = 'completed' THEN 'completed'
          WHEN state = 'failed' THEN 'failed'
          WHEN state = 'cancelled' THEN 'cancelled'
          ELSE 'paused' END) IS NOT NULL;
CREATE INDEX IF NOT EXISTS crawl_jobs_finished ON windrow.job_finished (
    (CASE WHEN state = 'ready' THEN 'pending'::public.job_status
          WHEN state = 'active' AND stop_as = 'cancelled' THEN 'cancelled'
          WHEN state = 'active' AND stop_as = 'paused' THEN 'paused'
          WHEN state IN ('active', 'waiting') THEN 'processing'
          WHEN state = 'completed' THEN 'completed'
          WHEN state = 'failed' THEN 'failed'
          WHEN state = 'cancelled' THEN 'cancelled'
          ELSE 'paused' END), priority DESC, created_at)
    WHERE queue = 'crawl_jobs'
      AND (CASE WHEN state = 'ready' THEN 'pending'::public.job_status
          WHEN state = 'active' AND stop_as = 'cancelled' THEN 'cancelled'
          WHEN state = 'active' AND stop_as = 'paused' THEN 'paused'
          WHEN state IN ('active', 'waiting') THEN 'processing'
          WHEN state = 'completed' THEN 'completed'
          WHEN state = 'failed' THEN 'failed'
          WHEN state = 'cancelled' THEN 'cancelled'
          ELSE 'paused' END) IS NOT NULL;

-- By this the planner leaves the leaves of finished jobs out of the claim and the reaper.
DO $$
BEGIN
    ALTER TABLE windrow.job_finished ADD CONSTRAINT crawl_jobs_status CHECK (
        CASE WHEN state = 'ready' THEN 'pending'::public.job_status
             WHEN state = 'active' AND stop_as = 'cancelled' THEN 'cancelled'
             WHEN state = 'active' AND stop_as = 'paused' THEN 'paused'
             WHEN state IN ('active', 'waiting') THEN 'processing'
             WHEN state = 'completed' THEN 'completed'
             WHEN state = 'failed' THEN 'failed'
             WHEN state = 'cancelled' THEN 'cancelled'
             ELSE 'paused' END IN ('completed', 'failed', 'cancelled'));
EXCEPTION WHEN duplicate_object THEN NULL;
END $$;

CREATE OR REPLACE FUNCTION windrow_dialect.insert_crawl_job() RETURNS trigger
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    is_done CONSTANT boolean := NEW.status IN ('completed', 'failed', 'cancelled');
BEGIN
    IF NEW.payload IS NULL THEN
        RAISE not_null_violation USING MESSAGE = 'payload of crawl_jobs may not be null';
    END IF;
    NEW.id := coalesce(NEW.id, gen_random_uuid());
    IF EXISTS (SELECT FROM windrow.job WHERE job.id = NEW.id) THEN
        RAISE unique_violation USING MESSAGE = format('crawl_jobs has the id %s already', NEW.id);
    END IF;
    PERFORM windrow_dialect.insert_job(json_build_object(
        'id', NEW.id, 'queue', 'crawl_jobs', 'kind', 'crawl', 'payload', NEW.payload,
        'headers', nullif(jsonb_strip_nulls(jsonb_build_object(
            'source_id', NEW.source_id,
            'crawl_jobs_worker_id', CASE WHEN is_done THEN NEW.worker_id END,
            'crawl_jobs_last_heartbeat', CASE WHEN is_done THEN NEW.last_heartbeat END)), '{}'),
        'priority', coalesce(NEW.priority, 0), 'tenant', NEW.user_id,
        'max_attempts', coalesce(NEW.max_retries, 3) + 1,
        'max_crashes', coalesce(NEW.max_retries, 3) + 1, 'created_at', NEW.created_at));
    UPDATE windrow.job_live
       SET attempts = coalesce(NEW.retry_count, 0), error = NEW.error_message,
           started_at = NEW.started_at
     WHERE id = NEW.id;
    PERFORM windrow_dialect.put_progress(NEW.id, NEW.progress_percentage);
    IF NEW.status = 'processing' THEN
        PERFORM windrow_dialect.claim_job(
            NEW.id, 'crawl_jobs:' || coalesce(NEW.worker_id::text, ''), 120,
            coalesce(NEW.last_heartbeat, NEW.started_at));
        UPDATE windrow.job_live SET started_at = coalesce(NEW.started_at, started_at)
         WHERE id = NEW.id;
    ELSIF NEW.status = 'paused' THEN
        PERFORM windrow_dialect.set_aside(NEW.id);
    ELSIF is_done THEN
        PERFORM windrow_dialect.finish_job(NEW.id, NEW.status::text, NEW.error_message);
        PERFORM windrow_dialect.set_finished_at(NEW.id, NEW.completed_at);
    END IF;
    SELECT * INTO NEW FROM public.crawl_jobs AS job WHERE job.id = NEW.id;
    RETURN NEW;
END
$$;

-- What an update wants of a job in another status. False: it may not be.
CREATE OR REPLACE FUNCTION windrow_dialect.move_crawl_job(
    old public.crawl_jobs, new public.crawl_jobs, job windrow.job_live)
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    held CONSTANT windrow.lease := (SELECT lease FROM windrow.lease
                                     WHERE token = job.lease AND job.state = 'active');
    is_over CONSTANT boolean := held.token IS NULL OR held.expires_at <= statement_timestamp();
    is_free CONSTANT boolean := job.state <> 'active' OR is_over OR held.worker ^@ 'crawl_jobs:';
BEGIN
    IF job.id IS NULL THEN
        RETURN new.status = 'pending' AND windrow_dialect.retry_job(old.id);
    ELSIF new.status = 'processing' THEN
        IF old.status = 'paused' AND job.state = 'active' THEN
            UPDATE windrow.job_live SET stop_as = NULL WHERE id = job.id;
            RETURN true;
        END IF;
        IF old.status = 'processing' AND is_over AND job.state = 'active' THEN
            PERFORM windrow_dialect.rescue_job(job.id);
        END IF;
        RETURN windrow_dialect.may_start(job)
           AND (windrow_dialect.claim_job(
                   job.id, 'crawl_jobs:' || coalesce(new.worker_id::text, ''), 120,
                   CASE WHEN new.last_heartbeat IS DISTINCT FROM old.last_heartbeat
                        THEN new.last_heartbeat END)).id IS NOT NULL;
    ELSIF new.status = 'pending' THEN
        IF job.state = 'active' AND old.status = 'paused' THEN
            UPDATE windrow.job_live SET stop_as = NULL WHERE id = job.id;
            RETURN true;
        ELSIF job.state = 'active' AND is_over THEN
            RETURN windrow_dialect.rescue_job(job.id) IS NOT NULL;
        ELSIF job.state = 'active' THEN
            RETURN is_free AND windrow_dialect.return_job(
                                   job.id, statement_timestamp()) IS NOT NULL;
        END IF;
        RETURN windrow_dialect.make_ready(job.id);
    ELSIF new.status IN ('paused', 'cancelled') AND NOT is_free THEN
        PERFORM windrow_dialect.tell_jobs(ids => ARRAY[job.id], stop_as => new.status::text,
                                          reason => new.error_message);
        RETURN true;
    ELSIF new.status = 'paused' AND job.state = 'active' THEN
        UPDATE windrow.job_live SET stop_as = 'paused' WHERE id = job.id;
        RETURN windrow_dialect.return_job(job.id, statement_timestamp()) IS NOT NULL;
    ELSIF new.status = 'paused' THEN
        RETURN windrow_dialect.set_aside(job.id);
    END IF;
    IF NOT is_free THEN
        RETURN false;
    END IF;
    IF held.token IS NOT NULL THEN
        UPDATE windrow.job_payload
           SET headers = coalesce(headers::jsonb, '{}') || jsonb_strip_nulls(jsonb_build_object(
                             'crawl_jobs_worker_id', new.worker_id,
                             'crawl_jobs_last_heartbeat', new.last_heartbeat))
         WHERE id = job.id;
    END IF;
    RETURN windrow_dialect.finish_job(
        job.id, new.status::text,
        CASE WHEN new.status = 'cancelled' THEN coalesce(new.error_message, 'cancelled')
             ELSE new.error_message END);
END
$$;

CREATE OR REPLACE FUNCTION windrow_dialect.update_crawl_job() RETURNS trigger
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    job CONSTANT windrow.job_live := windrow_dialect.lock_job(OLD.id);
    now_there public.crawl_jobs;
    was_there public.crawl_jobs := OLD;
BEGIN
    IF NEW.id IS DISTINCT FROM OLD.id THEN
        RAISE feature_not_supported USING MESSAGE = 'the id of a job cannot be changed';
    END IF;
    SELECT * INTO now_there FROM public.crawl_jobs AS there WHERE there.id = OLD.id;
    -- An explicit end or pause takes precedence over a rescue that committed meanwhile.
    IF NEW.status IN ('cancelled', 'paused', 'failed') AND OLD.status = 'processing'
       AND now_there.status = 'pending' AND now_there.retry_count = OLD.retry_count + 1 THEN
        NEW := jsonb_populate_record(now_there, windrow_dialect.carry_over(
                   to_jsonb(OLD), to_jsonb(NEW), to_jsonb(now_there)));
        OLD := now_there;
        was_there := now_there;
    END IF;
    -- A worker's heartbeat and its progress do not keep it from its other writes; but what was found
    -- silent and has spoken since is not to be reaped. No reaper cancels, pauses or completes.
    IF NEW.status NOT IN ('cancelled', 'paused', 'completed')
       AND now_there.last_heartbeat IS DISTINCT FROM OLD.last_heartbeat
       AND OLD.last_heartbeat < statement_timestamp() - interval '2 minutes' THEN
        RETURN NULL;
    END IF;
    was_there.last_heartbeat := now_there.last_heartbeat;
    was_there.progress_percentage := now_there.progress_percentage;
    IF now_there IS DISTINCT FROM was_there THEN
        RETURN NULL;
    END IF;

    IF NEW.status <> OLD.status
       OR (NEW.status = 'processing' AND NEW.worker_id IS DISTINCT FROM OLD.worker_id) THEN
        IF NOT windrow_dialect.move_crawl_job(OLD, NEW, job) THEN
            RETURN NULL;
        END IF;
    ELSIF job.state = 'active' AND NEW.last_heartbeat IS DISTINCT FROM OLD.last_heartbeat THEN
        PERFORM windrow_dialect.renew_job(
            OLD.id, coalesce(NEW.last_heartbeat, statement_timestamp()), 120);
    END IF;

    IF (NEW.priority, NEW.max_retries, NEW.retry_count, NEW.created_at, NEW.started_at, NEW.user_id,
        NEW.error_message)
       IS DISTINCT FROM (OLD.priority, OLD.max_retries, OLD.retry_count, OLD.created_at,
                         OLD.started_at, OLD.user_id, OLD.error_message) THEN
        -- Twice: it is live, or has ended by now.
        UPDATE windrow.job_live AS live
           SET priority = coalesce(NEW.priority, 0),
               created_at = coalesce(NEW.created_at, live.created_at),
               started_at = CASE WHEN NEW.started_at IS DISTINCT FROM OLD.started_at
                                 THEN NEW.started_at ELSE live.started_at END,
               tenant = CASE WHEN NEW.user_id IS DISTINCT FROM OLD.user_id
                             THEN NEW.user_id::text ELSE live.tenant END,
               error = NEW.error_message,
               max_attempts = CASE WHEN NEW.max_retries IS DISTINCT FROM OLD.max_retries
                                   THEN coalesce(NEW.max_retries, 3) + 1
                                   ELSE live.max_attempts END,
               max_crashes = CASE WHEN NEW.max_retries IS DISTINCT FROM OLD.max_retries
                                  THEN coalesce(NEW.max_retries, 3) + 1
                                  ELSE live.max_crashes END,
               crashes = CASE WHEN NEW.retry_count IS DISTINCT FROM OLD.retry_count
                              THEN least(live.crashes, coalesce(NEW.retry_count, 0))
                              ELSE live.crashes END,
               attempts = CASE WHEN NEW.retry_count IS DISTINCT FROM OLD.retry_count
                               THEN greatest(coalesce(NEW.retry_count, 0) - live.crashes, 0)
                               ELSE live.attempts END
         WHERE live.id = OLD.id;
        UPDATE windrow.job_finished AS finished
           SET priority = coalesce(NEW.priority, 0),
               created_at = coalesce(NEW.created_at, finished.created_at),
               started_at = NEW.started_at,
               error = NEW.error_message,
               attempts = CASE WHEN NEW.retry_count IS DISTINCT FROM OLD.retry_count
                               THEN greatest(coalesce(NEW.retry_count, 0) - finished.crashes, 0)
                               ELSE finished.attempts END
         WHERE finished.id = OLD.id;
    END IF;
    IF NEW.completed_at IS DISTINCT FROM OLD.completed_at THEN
        PERFORM windrow_dialect.set_finished_at(OLD.id, NEW.completed_at);
    END IF;
    IF NEW.progress_percentage IS DISTINCT FROM OLD.progress_percentage THEN
        PERFORM windrow_dialect.put_progress(OLD.id, NEW.progress_percentage);
    END IF;
    IF NEW.payload IS DISTINCT FROM OLD.payload OR NEW.source_id IS DISTINCT FROM OLD.source_id THEN
        UPDATE windrow.job_payload
           SET payload = CASE WHEN NEW.payload IS DISTINCT FROM OLD.payload
                              THEN NEW.payload::json ELSE payload END,
               headers = nullif(jsonb_strip_nulls(
                             coalesce(headers::jsonb, '{}')
                             || jsonb_build_object('source_id', NEW.source_id)), '{}')
         WHERE id = OLD.id;
    END IF;
    SELECT * INTO NEW FROM public.crawl_jobs AS there WHERE there.id = OLD.id;
    RETURN NEW;
END
$$;

CREATE OR REPLACE FUNCTION windrow_dialect.delete_crawl_job() RETURNS trigger
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    job CONSTANT windrow.job_live := windrow_dialect.lock_job(OLD.id);
    now_there public.crawl_jobs;
BEGIN
    SELECT * INTO now_there FROM public.crawl_jobs AS there WHERE there.id = OLD.id;
    IF now_there IS DISTINCT FROM OLD
       OR EXISTS (SELECT FROM windrow.lease
                   WHERE token = job.lease AND job.state = 'active'
                     AND NOT worker ^@ 'crawl_jobs:' AND expires_at > statement_timestamp())
       OR NOT windrow_dialect.delete_job(OLD.id) THEN
        RETURN NULL;
    END IF;
    RETURN OLD;
END
$$;

-- Where no Windrow worker runs, claims stage due jobs and rescue abandoned ones, for the claims after
-- them. After the statement, never before: the rows that a statement is about to change must be as its
-- snapshot shows them. Only claims write started_at, so a reaper finds stale rows as they are.
CREATE OR REPLACE FUNCTION windrow_dialect.tend_crawl_jobs() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM windrow_dialect.tend_queue('crawl_jobs');
    RETURN NULL;
END
$$;

CREATE OR REPLACE TRIGGER crawl_jobs_insert INSTEAD OF INSERT ON public.crawl_jobs
    FOR EACH ROW EXECUTE FUNCTION windrow_dialect.insert_crawl_job();
CREATE OR REPLACE TRIGGER crawl_jobs_update INSTEAD OF UPDATE ON public.crawl_jobs
    FOR EACH ROW EXECUTE FUNCTION windrow_dialect.update_crawl_job();
CREATE OR REPLACE TRIGGER crawl_jobs_delete INSTEAD OF DELETE ON public.crawl_jobs
    FOR EACH ROW EXECUTE FUNCTION windrow_dialect.delete_crawl_job();
CREATE OR REPLACE TRIGGER crawl_jobs_tend AFTER UPDATE OF started_at ON public.crawl_jobs
    FOR EACH STATEMENT EXECUTE FUNCTION windrow_dialect.tend_crawl_jobs();
