-- Writing nuq.queue_scrape and nuq.queue_crawl_finished. Both have the same columns, so all of it works
-- on rows of nuq.queue_scrape.
--
-- A statement's WHERE was judged by what its snapshot saw. So a trigger first locks the job, and does
-- nothing, as if the row had not been found, if anything of it has changed since. What reaps stalled
-- jobs and cleans up old ones does many by one statement, in whatever order the plan gives. So it
-- waits for nobody: a job that somebody has locked, or whose group is, is left for the next run.

-- A job as it is now, from either queue.
CREATE OR REPLACE FUNCTION nuq.look(relation text, job_id uuid) RETURNS nuq.queue_scrape
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    seen nuq.queue_scrape;
BEGIN
    -- Asked for by status, because the planner can then leave out where it is not.
    IF relation = 'queue_scrape' THEN
        SELECT * INTO seen FROM nuq.queue_scrape
         WHERE id = job_id AND status IN ('queued', 'active');
        IF NOT FOUND THEN
            SELECT * INTO seen FROM nuq.queue_scrape
             WHERE id = job_id AND status IN ('completed', 'failed');
        END IF;
    ELSE
        SELECT * INTO seen FROM nuq.queue_crawl_finished
         WHERE id = job_id AND status IN ('queued', 'active');
        IF NOT FOUND THEN
            SELECT * INTO seen FROM nuq.queue_crawl_finished
             WHERE id = job_id AND status IN ('completed', 'failed');
        END IF;
    END IF;
    RETURN seen;
END
$$;

-- Lock a job, live or finished, and look at it. Windrow's own pages are nobody else's to write.
CREATE OR REPLACE FUNCTION nuq.lock_and_look(relation text, job_id uuid) RETURNS nuq.queue_scrape
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
BEGIN
    PERFORM FROM windrow.job_live WHERE id = job_id AND queue <> 'web' FOR UPDATE;
    IF NOT FOUND THEN
        PERFORM FROM windrow.job_finished WHERE id = job_id AND queue <> 'web' FOR UPDATE;
    END IF;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    RETURN nuq.look(relation, job_id);
END
$$;

-- The fields of a JobRow for what was inserted. A job of NuQ's is never tried again when it failed,
-- and fails when it stalled for the tenth time.
CREATE OR REPLACE FUNCTION nuq.as_row(
    relation text, id uuid, data jsonb, created_at timestamptz, priority integer,
    listen_channel_id text, owner_id uuid, group_id uuid)
RETURNS json LANGUAGE sql STABLE AS $$
    SELECT json_build_object(
        'id', id,
        'queue', 'nuq.' || relation,
        'kind', 'nuq.' || relation,
        'payload', data,
        'headers', CASE WHEN listen_channel_id IS NOT NULL
                        THEN json_build_object('nuq_listen_channel_id', listen_channel_id) END,
        'priority', -greatest(priority, -2147483647),
        'created_at', created_at,
        'tenant', windrow_dialect.own_tenant(owner_id::text),
        'group', CASE WHEN relation = 'queue_scrape' THEN group_id END,
        'unique', CASE WHEN relation <> 'queue_scrape'
                       THEN 'nuq.group_crawl/' || group_id || '/' || id END,
        'max_attempts', 1,
        'max_crashes', 10,
        'joins_any_group', true)
$$;

-- A member that came while its group is being cancelled goes the way of the others.
CREATE OR REPLACE FUNCTION nuq.cancel_with_group(job_id uuid, crawl_id uuid) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    reason text;
BEGIN
    SELECT coalesce(cancel_reason, 'the crawl was cancelled') INTO reason
      FROM windrow.job_group WHERE id = crawl_id AND is_cancelled;
    IF FOUND THEN
        PERFORM windrow_dialect.finish_job(job_id, 'cancelled', reason);
    END IF;
END
$$;

CREATE OR REPLACE FUNCTION nuq.insert_job() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    wanted CONSTANT nuq.queue_scrape := ROW(NEW.*);
    seen nuq.queue_scrape;
BEGIN
    IF NEW.id IS NULL OR NEW.status IS NULL OR NEW.created_at IS NULL OR NEW.priority IS NULL THEN
        RAISE not_null_violation USING MESSAGE = format(
            'id, status, created_at and priority of nuq.%s must not be null', TG_TABLE_NAME);
    END IF;
    IF TG_TABLE_NAME <> 'queue_scrape' OR NOT nuq.leave_backlog(wanted) THEN
        PERFORM nuq.require_new(NEW.id);
        PERFORM windrow_dialect.insert_job(nuq.as_row(
            TG_TABLE_NAME, NEW.id, NEW.data, NEW.created_at, NEW.priority, NEW.listen_channel_id,
            NEW.owner_id, NEW.group_id));
        IF TG_TABLE_NAME = 'queue_scrape' THEN
            PERFORM nuq.cancel_with_group(NEW.id, NEW.group_id);
        END IF;
    END IF;
    -- A new job that waits is as it was written.
    IF (wanted.status, wanted.lock, wanted.locked_at, wanted.stalls, wanted.finished_at,
        wanted.returnvalue, wanted.failedreason, wanted.group_id)
       IS DISTINCT FROM ('queued'::nuq.job_status, NULL::uuid, NULL::timestamptz, NULL::integer,
                         NULL::timestamptz, NULL::jsonb, NULL::text, NULL::uuid) THEN
        seen := nuq.look(TG_TABLE_NAME, NEW.id);
        IF seen.status = 'queued' THEN
            PERFORM nuq.change_job(TG_TABLE_NAME, seen, wanted);
            seen := nuq.look(TG_TABLE_NAME, NEW.id);
        END IF;
        IF seen.id IS NOT NULL THEN
            NEW := ROW(seen.*);
        END IF;
    END IF;
    RETURN NEW;
END
$$;

-- Ids are unique among all jobs. One that only timed out in the backlog may be added again.
CREATE OR REPLACE FUNCTION nuq.require_new(job_id uuid) RETURNS void
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    reason text;
BEGIN
    SELECT coalesce(error, '') INTO reason FROM windrow.job_finished WHERE id = job_id;
    IF reason LIKE 'held too long:%' THEN
        PERFORM windrow_dialect.delete_job(job_id);
    ELSIF FOUND THEN
        RAISE unique_violation USING MESSAGE = format('a job has the id %s already', job_id);
    END IF;
END
$$;

CREATE OR REPLACE FUNCTION nuq.update_job() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    before nuq.queue_scrape := ROW(OLD.*);
    wanted nuq.queue_scrape := ROW(NEW.*);
    is_reaped CONSTANT boolean := before.lock IS NOT NULL AND wanted.lock IS NULL
        AND coalesce(wanted.stalls = coalesce(before.stalls, 0) + 1, false);
    -- The end of a run, or a renewal. Its lock may have been renewed meanwhile, or its group be
    -- cancelled: as long as it is the same lock that is no reason to refuse it. Only who takes a lock
    -- from somebody, as the reaper, must have seen all as it is.
    is_holders CONSTANT boolean := coalesce(
        wanted.status = 'completed' OR wanted.lock = before.lock
        OR (wanted.status = 'failed' AND wanted.stalls IS NOT DISTINCT FROM before.stalls), false);
    seen nuq.queue_scrape;
    after nuq.queue_scrape;
BEGIN
    IF wanted.id <> before.id THEN
        RAISE feature_not_supported USING MESSAGE = 'a job cannot be given another id';
    END IF;
    IF is_reaped AND NOT windrow_dialect.try_job(
                             OLD.id, with_group => wanted.status = 'failed') THEN
        RETURN NULL;
    END IF;
    seen := nuq.lock_and_look(TG_TABLE_NAME, OLD.id);
    -- An explicit failure takes precedence over a rescue that committed meanwhile. A worker that ends its
    -- run clears the lock, and has lost it.
    IF wanted.status = 'failed' AND wanted.lock = before.lock AND seen.status = 'queued'
       AND seen.stalls = coalesce(before.stalls, 0) + 1 THEN
        wanted := jsonb_populate_record(seen, windrow_dialect.carry_over(
                      to_jsonb(before), to_jsonb(wanted), to_jsonb(seen)));
        before := seen;
    END IF;
    IF seen.id IS NULL
       OR (seen IS DISTINCT FROM before
           AND NOT (is_holders AND coalesce(seen.lock = before.lock, false))) THEN
        RETURN NULL;
    END IF;
    IF NOT nuq.change_job(TG_TABLE_NAME, before, wanted) THEN
        RETURN NULL;
    END IF;
    -- A lock that was taken or renewed is as it was written, and so is the usual end of a run.
    IF wanted.status = 'queued' OR (wanted.status <> 'active' AND wanted.finished_at IS NULL) THEN
        after := nuq.look(TG_TABLE_NAME, OLD.id);
        IF after.id IS NOT NULL THEN
            NEW := ROW(after.*);
        END IF;
    END IF;
    RETURN NEW;
END
$$;

CREATE OR REPLACE FUNCTION nuq.delete_job() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    before CONSTANT nuq.queue_scrape := ROW(OLD.*);
    seen nuq.queue_scrape;
BEGIN
    IF before.status IN ('completed', 'failed') AND before.group_id IS NULL
       AND NOT windrow_dialect.try_job(OLD.id) THEN
        RETURN NULL;
    END IF;
    seen := nuq.lock_and_look(TG_TABLE_NAME, OLD.id);
    IF seen.id IS NULL OR seen IS DISTINCT FROM before THEN
        RETURN NULL;
    END IF;
    PERFORM windrow_dialect.delete_job(OLD.id);
    RETURN OLD;
END
$$;

-- Make a job what is wanted. It is locked, and it is `before`. Whether it could be done.
CREATE OR REPLACE FUNCTION nuq.change_job(
    relation text, before nuq.queue_scrape, wanted nuq.queue_scrape)
RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    PERFORM nuq.change_columns(
        before.id, before.data IS DISTINCT FROM wanted.data, wanted.data,
        before.listen_channel_id IS DISTINCT FROM wanted.listen_channel_id,
        wanted.listen_channel_id,
        nullif(wanted.created_at, before.created_at), nullif(wanted.priority, before.priority),
        before.owner_id IS DISTINCT FROM wanted.owner_id, wanted.owner_id);
    IF before.group_id IS DISTINCT FROM wanted.group_id THEN
        PERFORM nuq.change_group(relation, before.id, wanted.group_id);
    END IF;
    IF before.status IN ('completed', 'failed') THEN
        RETURN nuq.change_finished(relation, before, wanted);
    ELSIF wanted.status IN ('completed', 'failed') THEN
        RETURN nuq.end_job(before, wanted);
    END IF;
    IF before.status = 'active' AND wanted.status = 'queued' THEN
        RETURN nuq.requeue_job(before, wanted);
    END IF;
    IF before.stalls IS DISTINCT FROM wanted.stalls THEN
        UPDATE windrow.job_live SET crashes = coalesce(wanted.stalls, 0) WHERE id = before.id;
    END IF;
    IF before.failedreason IS DISTINCT FROM wanted.failedreason THEN
        UPDATE windrow.job_live SET error = windrow_dialect.short_error(wanted.failedreason)
         WHERE id = before.id;
    END IF;
    IF before.status = 'queued' AND wanted.status = 'active' THEN
        RETURN (windrow_dialect.claim_job(
                    before.id, 'nuq', 60, wanted.locked_at, wanted.lock)).id IS NOT NULL;
    ELSIF wanted.lock IS DISTINCT FROM before.lock AND wanted.lock IS NOT NULL
          AND before.lock IS NOT NULL THEN
        RETURN nuq.hand_over(before.id, before.lock, wanted.lock, wanted.locked_at);
    ELSIF wanted.locked_at IS DISTINCT FROM before.locked_at AND before.lock IS NOT NULL
          AND wanted.locked_at IS NOT NULL THEN
        RETURN windrow_dialect.renew_job(before.id, wanted.locked_at, 60);
    END IF;
    RETURN true;
END
$$;

-- What is written to a job in any state.
CREATE OR REPLACE FUNCTION nuq.change_columns(
    job_id uuid, has_data boolean, data jsonb, has_channel boolean, channel text,
    created timestamptz, urgency integer, has_owner boolean, owner uuid)
RETURNS void LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
BEGIN
    IF has_data THEN
        UPDATE windrow.job_payload SET payload = coalesce(data, 'null')::json WHERE id = job_id;
    END IF;
    IF has_channel THEN
        UPDATE windrow.job_payload
           SET headers = nullif(jsonb_strip_nulls(coalesce(headers::jsonb, '{}')
                                || jsonb_build_object('nuq_listen_channel_id', channel)), '{}')::json
         WHERE id = job_id;
    END IF;
    IF created IS NOT NULL OR urgency IS NOT NULL OR has_owner THEN
        UPDATE windrow.job
           SET created_at = coalesce(created, created_at),
               priority = coalesce(-greatest(urgency, -2147483647), priority),
               tenant = CASE WHEN has_owner THEN owner::text ELSE tenant END
         WHERE id = job_id;
    END IF;
END
$$;

-- A job leaves its group, and joins another.
CREATE OR REPLACE FUNCTION nuq.change_group(relation text, job_id uuid, crawl_id uuid)
RETURNS void LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    former record;
    work jsonb := windrow_dialect.no_work();
    is_live boolean;
BEGIN
    IF relation <> 'queue_scrape' THEN
        UPDATE windrow.job SET unique_key = 'nuq.group_crawl/' || crawl_id || '/' || job_id
         WHERE id = job_id;
        RETURN;
    END IF;
    SELECT group_id, state INTO former FROM windrow.job WHERE id = job_id;
    UPDATE windrow.job SET group_id = crawl_id WHERE id = job_id;
    is_live := former.state NOT IN ('completed', 'failed', 'cancelled');
    IF former.group_id IS NOT NULL THEN
        work := windrow_dialect.noted(work, 'deltas', windrow_dialect.delta(
            former.group_id, members => -1, pending => -is_live::integer,
            completed => -(former.state = 'completed')::integer,
            failed => -(former.state = 'failed')::integer,
            cancelled => -(former.state = 'cancelled')::integer));
    END IF;
    IF crawl_id IS NOT NULL THEN
        work := windrow_dialect.noted(work, 'deltas', windrow_dialect.delta(
            crawl_id, members => 1, pending => is_live::integer,
            completed => (former.state = 'completed')::integer,
            failed => (former.state = 'failed')::integer,
            cancelled => (former.state = 'cancelled')::integer));
    END IF;
    PERFORM windrow_dialect.settle(work);
END
$$;

-- A live job ends. One whose lock ran out, as the reaper says by counting one stall more, has a reason
-- and a time all the same.
CREATE OR REPLACE FUNCTION nuq.end_job(before nuq.queue_scrape, wanted nuq.queue_scrape)
RETURNS boolean LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    has_stalled CONSTANT boolean := wanted.status = 'failed' AND wanted.failedreason IS NULL
        AND coalesce(wanted.stalls, 0) = coalesce(before.stalls, 0) + 1;
    reason CONSTANT text := CASE
        WHEN wanted.status = 'completed' THEN NULL
        WHEN has_stalled THEN format('crashed %s times: the lease ran out', wanted.stalls)
        ELSE coalesce(wanted.failedreason, 'failed without a reason') END;
BEGIN
    IF before.stalls IS DISTINCT FROM wanted.stalls THEN
        UPDATE windrow.job_live SET crashes = coalesce(wanted.stalls, 0) WHERE id = before.id;
    END IF;
    IF has_stalled THEN
        PERFORM windrow_dialect.note_error(
            before.id, 'crash', format('the lease ran out (worker %s)', worker))
           FROM windrow.lease WHERE token = before.lock;
    END IF;
    PERFORM windrow_dialect.finish_job(
        before.id, wanted.status::text, reason,
        CASE WHEN wanted.status = 'completed' THEN wanted.returnvalue::json END,
        uses_attempt => wanted.status = 'failed' AND NOT has_stalled,
        is_noted => NOT has_stalled, at => wanted.finished_at);
    IF has_stalled THEN
        UPDATE windrow.job_finished SET lease = NULL WHERE id = before.id;
    END IF;
    IF windrow_dialect.if_recent(wanted.finished_at) IS NULL THEN
        PERFORM windrow_dialect.set_finished_at(before.id, wanted.finished_at);
    END IF;
    RETURN true;
END
$$;

-- An active job is queued again: by the reaper, when its lock ran out, or by whoever has it.
CREATE OR REPLACE FUNCTION nuq.requeue_job(before nuq.queue_scrape, wanted nuq.queue_scrape)
RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    IF wanted.stalls = coalesce(before.stalls, 0) + 1
       AND before.locked_at <= statement_timestamp() - interval '60 seconds' THEN
        RETURN windrow_dialect.rescue_job(before.id) IS NOT NULL;
    END IF;
    IF windrow_dialect.return_job(before.id, statement_timestamp()) IS NULL THEN
        RETURN false;
    END IF;
    UPDATE windrow.job_live SET lease = NULL, crashes = coalesce(wanted.stalls, 0)
     WHERE id = before.id;
    RETURN true;
END
$$;

-- Another lock on an active job: whoever had it has lost it.
CREATE OR REPLACE FUNCTION nuq.hand_over(
    job_id uuid, former uuid, token uuid, at timestamptz) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO windrow.lease (token, claimed_at, expires_at, seconds, worker, job_ids)
    VALUES (hand_over.token, at, at + interval '60 seconds', 60, 'nuq', ARRAY[job_id]);
    UPDATE windrow.job_live SET lease = hand_over.token WHERE id = job_id;
    PERFORM windrow_dialect.delete_leases(tokens => ARRAY[former]);
    RETURN true;
END
$$;

-- A finished job: its result, reason and time can be changed, and a failed one queued again.
CREATE OR REPLACE FUNCTION nuq.change_finished(
    relation text, before nuq.queue_scrape, wanted nuq.queue_scrape)
RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    IF wanted.status = before.status THEN
        IF before.returnvalue IS DISTINCT FROM wanted.returnvalue THEN
            UPDATE windrow.job_finished SET result = wanted.returnvalue::json, result_hash = NULL
             WHERE id = before.id;
        END IF;
        IF before.failedreason IS DISTINCT FROM wanted.failedreason THEN
            UPDATE windrow.job_finished
               SET error = windrow_dialect.short_error(wanted.failedreason)
             WHERE id = before.id;
            PERFORM windrow_dialect.note_error(before.id, 'attempt', wanted.failedreason)
              WHERE wanted.failedreason IS NOT NULL;
        END IF;
        IF before.stalls IS DISTINCT FROM wanted.stalls THEN
            UPDATE windrow.job_finished SET crashes = coalesce(wanted.stalls, 0)
             WHERE id = before.id;
        END IF;
        PERFORM windrow_dialect.set_finished_at(before.id, wanted.finished_at);
        RETURN true;
    ELSIF before.status = 'failed' AND wanted.status IN ('queued', 'active') THEN
        IF NOT windrow_dialect.retry_job(before.id) THEN
            RETURN false;  -- its place is taken
        END IF;
        IF wanted.status = 'active' THEN
            RETURN (windrow_dialect.claim_job(
                        before.id, 'nuq', 60, wanted.locked_at, wanted.lock)).id IS NOT NULL;
        END IF;
        RETURN true;
    END IF;
    RAISE feature_not_supported USING MESSAGE = format(
        'a job that is %s cannot become %s', before.status, wanted.status);
END
$$;

CREATE OR REPLACE TRIGGER insert_job INSTEAD OF INSERT ON nuq.queue_scrape
    FOR EACH ROW EXECUTE FUNCTION nuq.insert_job();
CREATE OR REPLACE TRIGGER update_job INSTEAD OF UPDATE ON nuq.queue_scrape
    FOR EACH ROW EXECUTE FUNCTION nuq.update_job();
CREATE OR REPLACE TRIGGER delete_job INSTEAD OF DELETE ON nuq.queue_scrape
    FOR EACH ROW EXECUTE FUNCTION nuq.delete_job();
CREATE OR REPLACE TRIGGER insert_job INSTEAD OF INSERT ON nuq.queue_crawl_finished
    FOR EACH ROW EXECUTE FUNCTION nuq.insert_job();
CREATE OR REPLACE TRIGGER update_job INSTEAD OF UPDATE ON nuq.queue_crawl_finished
    FOR EACH ROW EXECUTE FUNCTION nuq.update_job();
CREATE OR REPLACE TRIGGER delete_job INSTEAD OF DELETE ON nuq.queue_crawl_finished
    FOR EACH ROW EXECUTE FUNCTION nuq.delete_job();

-- Who listens as NuQ's clients do is told of every end, by whomever. The client that ended a job may
-- send the same itself; here it cannot be lost between the end and the telling.
CREATE OR REPLACE FUNCTION nuq.tell_end() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify(NEW.queue, job_id || CASE NEW.state WHEN 'completed' THEN '|completed'
                                                          ELSE '|failed' END)
       FROM unnest(NEW.job_ids) AS job_id;
    RETURN NULL;
END
$$;
CREATE OR REPLACE TRIGGER nuq_tell_end AFTER INSERT ON windrow.event FOR EACH ROW
    WHEN (NEW.type = 'job.finished' AND NEW.queue IN ('nuq.queue_scrape', 'nuq.queue_crawl_finished'))
    EXECUTE FUNCTION nuq.tell_end();
