-- Writing nuq.group_crawl. A group ends by itself, with its last member, and leaves a row in
-- nuq.queue_crawl_finished; what the printed cron job finds are the groups that never had a member.
--
-- The cron jobs write many groups by one statement, in whatever order the plan gives. So their writes
-- wait for nobody: a group that somebody has locked is passed over, and found by the next run.

CREATE OR REPLACE FUNCTION nuq.insert_group() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    owner CONSTANT text := windrow_dialect.own_tenant(
        nullif(NEW.owner_id, '00000000-0000-0000-0000-000000000000')::text);
    finish_job CONSTANT jsonb := nuq.as_row(
        'queue_crawl_finished', windrow_dialect.new_id(), '{}', NULL, 0, NULL, NEW.owner_id, NEW.id)::jsonb
        - '{joins_any_group,created_at,headers,group}'::text[]
        || jsonb_build_object('unique', 'nuq.group_crawl/' || NEW.id);
    found record;
BEGIN
    IF NEW.id IS NULL OR NEW.status IS NULL OR NEW.created_at IS NULL OR NEW.owner_id IS NULL
       OR NEW.ttl IS NULL THEN
        RAISE not_null_violation USING MESSAGE =
            'id, status, created_at, owner_id and ttl of nuq.group_crawl must not be null';
    END IF;
    -- Jobs may have come before their group.
    SELECT count(*) AS members,
           count(*) FILTER (WHERE finished_at IS NULL) AS pending,
           count(*) FILTER (WHERE state = 'completed') AS completed,
           count(*) FILTER (WHERE state = 'failed') AS failed,
           count(*) FILTER (WHERE state = 'cancelled') AS cancelled
      INTO found
      FROM windrow.job WHERE group_id = NEW.id;
    INSERT INTO windrow.job_group (
        id, created_at, tenant, is_open, retention_seconds, finish_job, members, pending,
        completed, failed, cancelled, state, is_cancelled, ended_at, expires_at)
    VALUES (
        NEW.id, NEW.created_at, owner, false, NEW.ttl / 1000, finish_job::json, found.members,
        found.pending, found.completed, found.failed, found.cancelled, NEW.status::text,
        NEW.status = 'cancelled',
        CASE WHEN NEW.status <> 'active' THEN statement_timestamp() END, NEW.expires_at);
    RETURN NEW;
END
$$;

CREATE OR REPLACE FUNCTION nuq.update_group() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    seen nuq.group_crawl;
    former windrow.job_group;
BEGIN
    IF NEW.id <> OLD.id THEN
        RAISE feature_not_supported USING MESSAGE = 'a group cannot be given another id';
    END IF;
    IF OLD.status = 'active' AND NEW.status = 'cancelled' THEN
        RETURN nuq.cancel_group(OLD, NEW);
    END IF;
    IF OLD.status = 'active' AND NEW.status = 'completed' THEN
        PERFORM FROM windrow.job_group WHERE id = OLD.id FOR UPDATE SKIP LOCKED;
        IF NOT FOUND THEN
            RETURN NULL;
        END IF;
    ELSE
        PERFORM windrow_dialect.lock_groups(ids => json_build_array(OLD.id)::text);
    END IF;
    SELECT * INTO seen FROM nuq.group_crawl WHERE id = OLD.id;
    IF seen.id IS NULL OR seen IS DISTINCT FROM OLD THEN
        RETURN NULL;
    END IF;
    SELECT * INTO former FROM windrow.job_group WHERE id = OLD.id;
    UPDATE windrow.job_group
       SET created_at = NEW.created_at,
           tenant = CASE WHEN NEW.owner_id = OLD.owner_id THEN tenant ELSE NEW.owner_id::text END,
           retention_seconds = CASE WHEN NEW.ttl = OLD.ttl THEN retention_seconds
                                    ELSE NEW.ttl / 1000 END,
           -- Whoever says that it has ended also inserts into nuq.queue_crawl_finished.
           finish_job = CASE WHEN NEW.status = OLD.status THEN finish_job END
     WHERE id = OLD.id AND (NEW.status = OLD.status OR (pending = 0 AND NOT is_open));
    IF NOT FOUND THEN
        RETURN NULL;  -- it has members elsewhere, or is held open
    END IF;
    IF OLD.status = 'active' AND NEW.status = 'completed' THEN
        PERFORM windrow_dialect.settle(windrow_dialect.noted(
            windrow_dialect.no_work(), 'deltas',
            windrow_dialect.delta(OLD.id, is_closed => true)));
    ELSIF OLD.status <> NEW.status THEN
        RAISE feature_not_supported USING MESSAGE = format(
            'a group that is %s cannot become %s', OLD.status, NEW.status);
    END IF;
    IF OLD.expires_at IS DISTINCT FROM NEW.expires_at THEN
        UPDATE windrow.job_group SET expires_at = NEW.expires_at WHERE id = OLD.id;
    END IF;
    SELECT * INTO NEW FROM nuq.group_crawl WHERE id = OLD.id;
    RETURN NEW;
END
$$;

-- Cancel the members of a group. Those that run are asked to stop.
CREATE OR REPLACE FUNCTION nuq.cancel_group(before nuq.group_crawl, wanted nuq.group_crawl)
RETURNS nuq.group_crawl LANGUAGE plpgsql AS $$
DECLARE
    after nuq.group_crawl;
BEGIN
    PERFORM FROM nuq.group_crawl WHERE id = before.id AND status = 'active';
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    PERFORM windrow_dialect.settle(windrow_dialect.cancel_into(
        windrow_dialect.no_work(), before.id, 'the crawl was cancelled'));
    SELECT * INTO after FROM nuq.group_crawl WHERE id = before.id;
    RETURN after;
END
$$;

-- Lock a group that has expired and its members, all of which have finished. Whether all could be had
-- at once: if somebody has one of them, it is being removed, or comes back to life.
CREATE OR REPLACE FUNCTION nuq.try_expired(crawl_id uuid) RETURNS boolean
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    locked bigint;
BEGIN
    PERFORM FROM windrow.job_group WHERE id = crawl_id FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    SELECT count(*) INTO locked
      FROM (SELECT FROM windrow.job_finished WHERE group_id = crawl_id
               FOR UPDATE SKIP LOCKED) AS member;
    RETURN locked = (SELECT count(*) FROM windrow.job WHERE group_id = crawl_id);
END
$$;

-- With a group go its jobs, and its row in nuq.queue_crawl_finished. Jobs are locked before groups.
CREATE OR REPLACE FUNCTION nuq.delete_group() RETURNS trigger
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    seen nuq.group_crawl;
    root uuid;
    job_id uuid;
BEGIN
    IF OLD.status = 'completed' AND OLD.expires_at < statement_timestamp() THEN
        IF NOT nuq.try_expired(OLD.id) THEN
            RETURN NULL;
        END IF;
    ELSE
        PERFORM windrow_dialect.lock_group(OLD.id, with_finished => true);
    END IF;
    SELECT * INTO seen FROM nuq.group_crawl WHERE id = OLD.id;
    IF seen.id IS NULL OR seen IS DISTINCT FROM OLD THEN
        RETURN NULL;
    END IF;
    DELETE FROM windrow.job_group WHERE id = OLD.id RETURNING job_group.root INTO root;
    FOR job_id IN
        SELECT job.id FROM windrow.job WHERE job.group_id = OLD.id
         UNION ALL
        SELECT done.id FROM nuq.queue_crawl_finished AS done WHERE done.group_id = OLD.id
         ORDER BY id
    LOOP
        PERFORM windrow_dialect.delete_job(job_id);
    END LOOP;
    IF root IS NOT NULL THEN
        PERFORM windrow_dialect.settle(windrow_dialect.noted(
            windrow_dialect.no_work(), 'waiting',
            jsonb_build_object('root', root, 'group', OLD.id)));
    END IF;
    RETURN OLD;
END
$$;

CREATE OR REPLACE TRIGGER insert_group INSTEAD OF INSERT ON nuq.group_crawl
    FOR EACH ROW EXECUTE FUNCTION nuq.insert_group();
CREATE OR REPLACE TRIGGER update_group INSTEAD OF UPDATE ON nuq.group_crawl
    FOR EACH ROW EXECUTE FUNCTION nuq.update_group();
CREATE OR REPLACE TRIGGER delete_group INSTEAD OF DELETE ON nuq.group_crawl
    FOR EACH ROW EXECUTE FUNCTION nuq.delete_group();
