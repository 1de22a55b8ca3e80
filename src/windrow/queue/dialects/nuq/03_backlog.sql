-- Writing nuq.queue_scrape_backlog: jobs that are held until somebody lets them go. If their owner has a
-- limit, under the key nuq.owner/<owner_id>, that is Windrow, as soon as there is room; else it is who
-- moves the row to nuq.queue_scrape.

CREATE OR REPLACE FUNCTION nuq.look_in_backlog(job_id uuid) RETURNS nuq.queue_scrape_backlog
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    seen nuq.queue_scrape_backlog;
BEGIN
    PERFORM FROM windrow.job_live WHERE id = job_id AND queue <> 'web' FOR UPDATE;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    SELECT * INTO seen FROM nuq.queue_scrape_backlog WHERE id = job_id;
    RETURN seen;
END
$$;

-- Hold a job until `times_out_at`, to the microsecond: whole seconds after the time it was due.
CREATE OR REPLACE FUNCTION nuq.set_timeout(job_id uuid, times_out_at timestamptz) RETURNS void
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
BEGIN
    UPDATE windrow.job_live AS job
       SET max_hold_seconds = hold.seconds,
           run_at = coalesce($2 - hold.seconds * interval '1 second', job.run_at)
      FROM (SELECT CASE WHEN $2 IS NOT NULL
                        THEN greatest(ceil(date_part('epoch', $2 - created_at)), 0)::bigint
                   END AS seconds
              FROM windrow.job_live WHERE id = job_id) AS hold
     WHERE job.id = job_id;
END
$$;

CREATE OR REPLACE FUNCTION nuq.insert_backlog() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    owner_key CONSTANT text := 'nuq.owner/' || NEW.owner_id;
    inserted jsonb;
BEGIN
    IF NEW.id IS NULL OR NEW.created_at IS NULL OR NEW.priority IS NULL THEN
        RAISE not_null_violation USING MESSAGE =
            'id, created_at and priority of nuq.queue_scrape_backlog must not be null';
    END IF;
    PERFORM nuq.require_new(NEW.id);
    -- As a follower, which is held by its state alone, and then made an ordinary job.
    SELECT one INTO inserted
      FROM windrow_dialect.insert_jobs(
               rows => json_build_array(nuq.as_row(
                   'queue_scrape', NEW.id, NEW.data, NEW.created_at, NEW.priority,
                   NEW.listen_channel_id, NEW.owner_id, NEW.group_id)::jsonb
                   || '{"is_cleaned": false}')::text,
               followers => json_build_array(NEW.id)::text, are_drafted => 'true') AS one;
    IF inserted IS NULL THEN
        RAISE unique_violation USING MESSAGE = format('a job has the id %s already', NEW.id);
    END IF;
    UPDATE windrow.job_live
       SET is_follower = false,
           created_at = NEW.created_at,
           limit_keys = (SELECT ARRAY[job_limit.key] FROM windrow.job_limit
                          WHERE job_limit.key = owner_key
                            AND (active IS NOT NULL OR per_second IS NOT NULL))
     WHERE id = NEW.id;
    PERFORM nuq.set_timeout(NEW.id, NEW.times_out_at);
    IF NEW.group_id IS NOT NULL THEN
        PERFORM windrow_dialect.join_group(NEW.group_id, true);
        PERFORM nuq.cancel_with_group(NEW.id, NEW.group_id);
    END IF;
    RETURN NEW;
END
$$;

-- A job that is put into nuq.queue_scrape while it lies in the backlog becomes ready where it is.
-- Whether it did: false if there is no such job in the backlog.
CREATE OR REPLACE FUNCTION nuq.leave_backlog(wanted nuq.queue_scrape) RETURNS boolean
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    seen CONSTANT nuq.queue_scrape_backlog := nuq.look_in_backlog(wanted.id);
    former windrow.job_live;
BEGIN
    IF seen.id IS NULL THEN
        RETURN false;
    END IF;
    SELECT * INTO former FROM windrow.job_live WHERE id = wanted.id;
    IF former.state = 'ready' OR former.is_follower THEN
        RAISE unique_violation USING MESSAGE = format('a job has the id %s already', wanted.id);
    END IF;
    UPDATE windrow.job_live
       SET state = 'ready', stop_as = NULL, seq = nextval('windrow.job_seq'),
           run_at = least(run_at, statement_timestamp())
     WHERE id = wanted.id;
    INSERT INTO windrow.job_slot (key, job_id)
    SELECT carried, wanted.id FROM unnest(former.limit_keys) AS carried ON CONFLICT DO NOTHING;
    PERFORM windrow_dialect.count_move(former.queue, former.state, 'ready');
    PERFORM nuq.change_columns(
        seen.id, seen.data IS DISTINCT FROM wanted.data, wanted.data,
        seen.listen_channel_id IS DISTINCT FROM wanted.listen_channel_id, wanted.listen_channel_id,
        nullif(wanted.created_at, seen.created_at), nullif(wanted.priority, seen.priority),
        seen.owner_id IS DISTINCT FROM wanted.owner_id, wanted.owner_id);
    IF seen.group_id IS DISTINCT FROM wanted.group_id THEN
        PERFORM nuq.change_group('queue_scrape', seen.id, wanted.group_id);
    END IF;
    RETURN true;
END
$$;

CREATE OR REPLACE FUNCTION nuq.update_backlog() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    seen CONSTANT nuq.queue_scrape_backlog := nuq.look_in_backlog(OLD.id);
BEGIN
    IF NEW.id <> OLD.id THEN
        RAISE feature_not_supported USING MESSAGE = 'a job cannot be given another id';
    END IF;
    IF seen.id IS NULL OR seen IS DISTINCT FROM OLD THEN
        RETURN NULL;
    END IF;
    PERFORM nuq.change_columns(
        OLD.id, OLD.data IS DISTINCT FROM NEW.data, NEW.data,
        OLD.listen_channel_id IS DISTINCT FROM NEW.listen_channel_id, NEW.listen_channel_id,
        nullif(NEW.created_at, OLD.created_at), nullif(NEW.priority, OLD.priority),
        OLD.owner_id IS DISTINCT FROM NEW.owner_id, NEW.owner_id);
    IF OLD.times_out_at IS DISTINCT FROM NEW.times_out_at THEN
        PERFORM nuq.set_timeout(OLD.id, NEW.times_out_at);
    END IF;
    IF OLD.group_id IS DISTINCT FROM NEW.group_id THEN
        PERFORM nuq.change_group('queue_scrape', OLD.id, NEW.group_id);
    END IF;
    RETURN NEW;
END
$$;

-- A row that is deleted because its time is out has failed, and says so in nuq.queue_scrape. It goes
-- without a trace if it is not out, or if its group is gone.
CREATE OR REPLACE FUNCTION nuq.delete_backlog() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    has_timed_out CONSTANT boolean := coalesce(OLD.times_out_at < statement_timestamp(), false);
    seen nuq.queue_scrape_backlog;
BEGIN
    IF has_timed_out AND NOT windrow_dialect.try_job(OLD.id) THEN
        RETURN NULL;
    END IF;
    seen := nuq.look_in_backlog(OLD.id);
    IF seen.id IS NULL OR seen IS DISTINCT FROM OLD THEN
        RETURN NULL;
    END IF;
    IF has_timed_out
       AND (OLD.group_id IS NULL
            OR EXISTS (SELECT FROM windrow.job_group WHERE id = OLD.group_id)) THEN
        PERFORM windrow_dialect.finish_job(OLD.id, 'failed', format(
            'held too long: waited %s s in the backlog',
            floor(date_part('epoch', OLD.times_out_at - OLD.created_at))));
    ELSE
        PERFORM windrow_dialect.delete_job(OLD.id);
    END IF;
    RETURN OLD;
END
$$;

CREATE OR REPLACE TRIGGER insert_backlog INSTEAD OF INSERT ON nuq.queue_scrape_backlog
    FOR EACH ROW EXECUTE FUNCTION nuq.insert_backlog();
CREATE OR REPLACE TRIGGER update_backlog INSTEAD OF UPDATE ON nuq.queue_scrape_backlog
    FOR EACH ROW EXECUTE FUNCTION nuq.update_backlog();
CREATE OR REPLACE TRIGGER delete_backlog INSTEAD OF DELETE ON nuq.queue_scrape_backlog
    FOR EACH ROW EXECUTE FUNCTION nuq.delete_backlog();
