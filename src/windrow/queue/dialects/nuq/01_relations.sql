-- The dialect `nuq`: the tables of Firecrawl's Postgres queue as views over the one queue.
--
-- Queues and kinds: what NuQ inserts into nuq.queue_scrape is a job of the kind nuq.queue_scrape in the
-- queue nuq.queue_scrape, and likewise nuq.queue_crawl_finished. Only these queues are shown, whoever
-- inserted into them; groups are all shown.
--
-- Windrow's own pages, maps and kickoffs of crawls (kinds web.scrape, web.map and web.crawl of the queue
-- web) are shown in nuq.queue_scrape, and the finish jobs of its crawls and batches (web.finish) in
-- nuq.queue_crawl_finished, to be read: a write finds no such row. Those that wait are in the backlog even
-- when they are ready, for who takes the first queued row of nuq.queue_scrape must be able to run it; a
-- finish job that is ready is not shown.
--
--   nuq.queue_scrape, nuq.queue_crawl_finished
--     status             queued: ready · active: active, waiting · completed: completed · failed: failed, cancelled
--     data               payload (SQL's null for JSON's)
--     priority           -priority: lower ones first here, higher ones first there
--     lock               the lease token of an active job, else null
--     locked_at          60 s before the lease ends: what is written is shown, and the printed reaper, which takes
--                        what was locked a minute ago, takes leases that are over and no others, of any length
--     stalls             crashes, null for none; a job of NuQ's fails with its tenth
--     listen_channel_id  the header nuq_listen_channel_id
--     returnvalue        result · failedreason: error, in full where it is in the history
--     owner_id           tenant; one that is no UUID by UUIDv5
--     group_id           group_id; of a kickoff, which is no member, its id, which is that of its crawl; of
--                        a crawl_finished job the UUID in its unique key nuq.group_crawl/<group>[/<job>]
--   nuq.queue_scrape_backlog: jobs of the queue nuq.queue_scrape that wait but cannot be claimed: held,
--     scheduled, paused, and ready ones while their queue or group is paused or their limit parked
--     times_out_at       run_at + max_hold_seconds, of held ones
--   nuq.group_crawl: windrow.job_group
--     status             state; cancelled as soon as it is being cancelled
--     ttl                retention_seconds · 1000 · expires_at: expires_at

CREATE SCHEMA IF NOT EXISTS nuq;

DO $$
BEGIN
    CREATE TYPE nuq.job_status AS ENUM ('queued', 'active', 'completed', 'failed');
EXCEPTION WHEN duplicate_object THEN NULL;
END $$;
DO $$
BEGIN
    CREATE TYPE nuq.group_status AS ENUM ('active', 'completed', 'cancelled');
EXCEPTION WHEN duplicate_object THEN NULL;
END $$;

-- Not what IMMUTABLE promises in general, as days may have 23 hours; seconds are always seconds.
CREATE OR REPLACE FUNCTION nuq.times_out_at(run_at timestamptz, seconds bigint)
RETURNS timestamptz LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
BEGIN
    RETURN run_at + seconds * interval '1 second';
END
$$;

-- The text of a failure in full: the row has its first line.
CREATE OR REPLACE FUNCTION nuq.full_error(id uuid, error text) RETURNS text
LANGUAGE sql STABLE STRICT AS $$
    SELECT coalesce(
        (SELECT message FROM windrow.job_error AS noted
          WHERE noted.job_id = full_error.id
            AND windrow_dialect.short_error(message) = full_error.error
          ORDER BY place DESC LIMIT 1),
        full_error.error)
$$;

-- What may not be claimed just now: whether a queue is paused, which groups are, which limits are parked.
-- Tenants may not look at queues and limits, and claim nothing: to them nothing is.
CREATE OR REPLACE FUNCTION nuq.is_paused(queue text) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF NOT has_table_privilege('windrow.queue', 'SELECT') THEN
        RETURN false;
    END IF;
    RETURN EXISTS (SELECT FROM windrow.queue AS known WHERE known.name = $1 AND known.is_paused);
END
$$;
CREATE OR REPLACE FUNCTION nuq.paused_groups() RETURNS uuid[] LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN ARRAY(SELECT id FROM windrow.job_group WHERE is_paused);
END
$$;
CREATE OR REPLACE FUNCTION nuq.parked_keys() RETURNS text[] LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF NOT has_table_privilege('windrow.job_limit', 'SELECT') THEN
        RETURN '{}';
    END IF;
    RETURN ARRAY(SELECT key FROM windrow.job_limit WHERE parked_until > statement_timestamp());
END
$$;

CREATE OR REPLACE VIEW nuq.queue_scrape WITH (security_invoker = true) AS
SELECT job.id,
       CASE job.state WHEN 'ready' THEN 'queued'::nuq.job_status
                      WHEN 'active' THEN 'active' WHEN 'waiting' THEN 'active'
                      WHEN 'completed' THEN 'completed'
                      WHEN 'failed' THEN 'failed' WHEN 'cancelled' THEN 'failed' END AS status,
       (SELECT nullif(windrow_dialect.as_jsonb(stored.payload), 'null')
          FROM windrow.job_payload AS stored WHERE stored.id = job.id) AS data,
       job.created_at,
       -greatest(job.priority, -2147483647) AS priority,
       CASE WHEN job.state = 'active' THEN job.lease END AS lock,
       CASE WHEN job.state = 'active'
            THEN (SELECT lease.expires_at - interval '60 seconds'
                    FROM windrow.lease WHERE lease.token = job.lease) END AS locked_at,
       nullif(job.crashes, 0) AS stalls,
       job.finished_at,
       (SELECT stored.headers ->> 'nuq_listen_channel_id'
          FROM windrow.job_payload AS stored WHERE stored.id = job.id) AS listen_channel_id,
       coalesce(windrow_dialect.as_jsonb(job.result),
                (SELECT windrow_dialect.as_jsonb(convert_from(blob.body, 'UTF8')::json)
                   FROM windrow.blob WHERE blob.hash = job.result_hash)) AS returnvalue,
       nuq.full_error(job.id, job.error) AS failedreason,
       windrow_dialect.as_uuid(job.tenant) AS owner_id,
       coalesce(job.group_id, CASE WHEN job.kind = 'web.crawl' AND job.queue = 'web' THEN job.id END)
           AS group_id
  FROM windrow.job
 WHERE CASE WHEN job.queue = 'web'
            THEN CASE WHEN job.state = 'ready' THEN NULL
                      WHEN job.kind IN ('web.scrape', 'web.map', 'web.crawl')
                      THEN 'nuq.queue_scrape'
                      WHEN job.kind = 'web.finish' THEN 'nuq.queue_crawl_finished' END
            ELSE job.queue END = 'nuq.queue_scrape'
   AND job.state NOT IN ('held', 'scheduled', 'paused')
   AND (job.state <> 'ready'
        OR (NOT (SELECT nuq.is_paused('nuq.queue_scrape'))
            AND (job.group_id IS NULL
                 OR job.group_id <> ALL ((SELECT nuq.paused_groups())::uuid[]))
            AND (job.limit_keys IS NULL
                 OR NOT job.limit_keys && (SELECT nuq.parked_keys()))));

CREATE OR REPLACE VIEW nuq.queue_crawl_finished WITH (security_invoker = true) AS
SELECT job.id,
       CASE job.state WHEN 'ready' THEN 'queued'::nuq.job_status
                      WHEN 'active' THEN 'active' WHEN 'waiting' THEN 'active'
                      WHEN 'completed' THEN 'completed'
                      WHEN 'failed' THEN 'failed' WHEN 'cancelled' THEN 'failed' END AS status,
       (SELECT nullif(windrow_dialect.as_jsonb(stored.payload), 'null')
          FROM windrow.job_payload AS stored WHERE stored.id = job.id) AS data,
       job.created_at,
       -greatest(job.priority, -2147483647) AS priority,
       CASE WHEN job.state = 'active' THEN job.lease END AS lock,
       CASE WHEN job.state = 'active'
            THEN (SELECT lease.expires_at - interval '60 seconds'
                    FROM windrow.lease WHERE lease.token = job.lease) END AS locked_at,
       nullif(job.crashes, 0) AS stalls,
       job.finished_at,
       (SELECT stored.headers ->> 'nuq_listen_channel_id'
          FROM windrow.job_payload AS stored WHERE stored.id = job.id) AS listen_channel_id,
       coalesce(windrow_dialect.as_jsonb(job.result),
                (SELECT windrow_dialect.as_jsonb(convert_from(blob.body, 'UTF8')::json)
                   FROM windrow.blob WHERE blob.hash = job.result_hash)) AS returnvalue,
       nuq.full_error(job.id, job.error) AS failedreason,
       windrow_dialect.as_uuid(job.tenant) AS owner_id,
       windrow_dialect.as_uuid(substr(job.unique_key, 17, 36)) AS group_id
  FROM windrow.job
 WHERE CASE WHEN job.queue = 'web'
            THEN CASE WHEN job.state = 'ready' THEN NULL
                      WHEN job.kind IN ('web.scrape', 'web.map', 'web.crawl')
                      THEN 'nuq.queue_scrape'
                      WHEN job.kind = 'web.finish' THEN 'nuq.queue_crawl_finished' END
            ELSE job.queue END = 'nuq.queue_crawl_finished'
   AND job.state NOT IN ('held', 'scheduled', 'paused')
   AND (job.state <> 'ready'
        OR NOT (SELECT nuq.is_paused('nuq.queue_crawl_finished')));

CREATE OR REPLACE VIEW nuq.queue_scrape_backlog WITH (security_invoker = true) AS
SELECT job.id,
       (SELECT nullif(windrow_dialect.as_jsonb(stored.payload), 'null')
          FROM windrow.job_payload AS stored WHERE stored.id = job.id) AS data,
       job.created_at,
       -greatest(job.priority, -2147483647) AS priority,
       (SELECT stored.headers ->> 'nuq_listen_channel_id'
          FROM windrow.job_payload AS stored WHERE stored.id = job.id) AS listen_channel_id,
       windrow_dialect.as_uuid(job.tenant) AS owner_id,
       coalesce(job.group_id, CASE WHEN job.kind = 'web.crawl' AND job.queue = 'web' THEN job.id END)
           AS group_id,
       CASE WHEN job.state = 'held'
            THEN nuq.times_out_at(job.run_at, job.max_hold_seconds) END AS times_out_at
  FROM windrow.job
 WHERE CASE WHEN job.queue = 'web'
            THEN CASE WHEN job.kind IN ('web.scrape', 'web.map', 'web.crawl')
                      THEN 'nuq.queue_scrape' END
            ELSE job.queue END = 'nuq.queue_scrape'
   AND job.state IN ('held', 'scheduled', 'paused', 'ready')
   AND (job.state <> 'ready'
        OR job.queue = 'web'
        OR (SELECT nuq.is_paused('nuq.queue_scrape'))
        OR job.group_id = ANY ((SELECT nuq.paused_groups())::uuid[])
        OR job.limit_keys && (SELECT nuq.parked_keys()));

CREATE OR REPLACE VIEW nuq.group_crawl WITH (security_invoker = true) AS
SELECT crawl.id,
       CASE WHEN crawl.is_cancelled THEN 'cancelled'::nuq.group_status
            WHEN crawl.state = 'active' THEN 'active'
            WHEN crawl.state = 'cancelled' THEN 'cancelled'
            ELSE 'completed' END AS status,
       crawl.created_at,
       coalesce(windrow_dialect.as_uuid(crawl.tenant),
                '00000000-0000-0000-0000-000000000000') AS owner_id,
       CASE crawl.retention_seconds WHEN -1 THEN 3155760000000
                                    ELSE coalesce(crawl.retention_seconds, 86400) * 1000 END AS ttl,
       crawl.expires_at
  FROM windrow.job_group AS crawl;

ALTER VIEW nuq.queue_scrape ALTER COLUMN id SET DEFAULT gen_random_uuid();
ALTER VIEW nuq.queue_scrape ALTER COLUMN status SET DEFAULT 'queued';
ALTER VIEW nuq.queue_scrape ALTER COLUMN created_at SET DEFAULT now();
ALTER VIEW nuq.queue_scrape ALTER COLUMN priority SET DEFAULT 0;
ALTER VIEW nuq.queue_crawl_finished ALTER COLUMN id SET DEFAULT gen_random_uuid();
ALTER VIEW nuq.queue_crawl_finished ALTER COLUMN status SET DEFAULT 'queued';
ALTER VIEW nuq.queue_crawl_finished ALTER COLUMN created_at SET DEFAULT now();
ALTER VIEW nuq.queue_crawl_finished ALTER COLUMN priority SET DEFAULT 0;
ALTER VIEW nuq.queue_scrape_backlog ALTER COLUMN id SET DEFAULT gen_random_uuid();
ALTER VIEW nuq.queue_scrape_backlog ALTER COLUMN created_at SET DEFAULT now();
ALTER VIEW nuq.queue_scrape_backlog ALTER COLUMN priority SET DEFAULT 0;
ALTER VIEW nuq.group_crawl ALTER COLUMN id SET DEFAULT gen_random_uuid();
ALTER VIEW nuq.group_crawl ALTER COLUMN status SET DEFAULT 'active';
ALTER VIEW nuq.group_crawl ALTER COLUMN created_at SET DEFAULT now();
ALTER VIEW nuq.group_crawl ALTER COLUMN ttl SET DEFAULT 86400000;

-- Of earlier versions, which showed less of Windrow's own crawls.
DROP INDEX IF EXISTS windrow.nuq_live, windrow.nuq_finished, windrow.nuq_backlog, windrow.nuq_owner,
    windrow.nuq_shown_live, windrow.nuq_shown_finished, windrow.nuq_timeout, windrow.nuq_owner_live,
    windrow.nuq_crawl_finished_live, windrow.nuq_crawl_finished;

-- The expressions are those of the views, to the letter: the planner knows them by nothing else. The
-- first one serves the claim (in its order), the reaper and who asks for a status.
-- Each index asks that its expression is not null, which is always so: else a plan that was made while
-- the queue was empty may go through all of one of them to find a row by its id.
CREATE INDEX IF NOT EXISTS nuq_status_live ON windrow.job_live (
    (CASE WHEN queue = 'web'
         THEN CASE WHEN state = 'ready' THEN NULL
                   WHEN kind IN ('web.scrape', 'web.map', 'web.crawl')
                   THEN 'nuq.queue_scrape'
                   WHEN kind = 'web.finish' THEN 'nuq.queue_crawl_finished' END
         ELSE queue END),
    (CASE state WHEN 'ready' THEN 'queued'::nuq.job_status
                WHEN 'active' THEN 'active' WHEN 'waiting' THEN 'active'
                WHEN 'completed' THEN 'completed'
                WHEN 'failed' THEN 'failed' WHEN 'cancelled' THEN 'failed' END),
    (-greatest(priority, -2147483647)), created_at)
    WHERE CASE WHEN queue = 'web'
         THEN CASE WHEN state = 'ready' THEN NULL
                   WHEN kind IN ('web.scrape', 'web.map', 'web.crawl')
                   THEN 'nuq.queue_scrape'
                   WHEN kind = 'web.finish' THEN 'nuq.queue_crawl_finished' END
         ELSE queue END IN ('nuq.queue_scrape', 'nuq.queue_crawl_finished')
      AND (CASE state WHEN 'ready' THEN 'queued'::nuq.job_status
                WHEN 'active' THEN 'active' WHEN 'waiting' THEN 'active'
                WHEN 'completed' THEN 'completed'
                WHEN 'failed' THEN 'failed' WHEN 'cancelled' THEN 'failed' END) IS NOT NULL;
CREATE INDEX IF NOT EXISTS nuq_status_finished ON windrow.job_finished (
    (CASE WHEN queue = 'web'
         THEN CASE WHEN state = 'ready' THEN NULL
                   WHEN kind IN ('web.scrape', 'web.map', 'web.crawl')
                   THEN 'nuq.queue_scrape'
                   WHEN kind = 'web.finish' THEN 'nuq.queue_crawl_finished' END
         ELSE queue END),
    (CASE state WHEN 'ready' THEN 'queued'::nuq.job_status
                WHEN 'active' THEN 'active' WHEN 'waiting' THEN 'active'
                WHEN 'completed' THEN 'completed'
                WHEN 'failed' THEN 'failed' WHEN 'cancelled' THEN 'failed' END),
    created_at)
    WHERE CASE WHEN queue = 'web'
         THEN CASE WHEN state = 'ready' THEN NULL
                   WHEN kind IN ('web.scrape', 'web.map', 'web.crawl')
                   THEN 'nuq.queue_scrape'
                   WHEN kind = 'web.finish' THEN 'nuq.queue_crawl_finished' END
         ELSE queue END IN ('nuq.queue_scrape', 'nuq.queue_crawl_finished')
      AND (CASE state WHEN 'ready' THEN 'queued'::nuq.job_status
                WHEN 'active' THEN 'active' WHEN 'waiting' THEN 'active'
                WHEN 'completed' THEN 'completed'
                WHEN 'failed' THEN 'failed' WHEN 'cancelled' THEN 'failed' END) IS NOT NULL;
-- Of partial indexes the planner has no statistics: what it knows all keys of it takes for rare. So these
-- have the status, too, and are preferred to those above, which would read all jobs of a status.
CREATE INDEX IF NOT EXISTS nuq_group_live ON windrow.job_live (
    (coalesce(group_id, CASE WHEN kind = 'web.crawl' AND queue = 'web' THEN id END)),
    (CASE WHEN queue = 'web'
         THEN CASE WHEN state = 'ready' THEN NULL
                   WHEN kind IN ('web.scrape', 'web.map', 'web.crawl')
                   THEN 'nuq.queue_scrape'
                   WHEN kind = 'web.finish' THEN 'nuq.queue_crawl_finished' END
         ELSE queue END))
    WHERE coalesce(group_id, CASE WHEN kind = 'web.crawl' AND queue = 'web' THEN id END) IS NOT NULL;
CREATE INDEX IF NOT EXISTS nuq_group_finished ON windrow.job_finished (
    (coalesce(group_id, CASE WHEN kind = 'web.crawl' AND queue = 'web' THEN id END)),
    (CASE WHEN queue = 'web'
         THEN CASE WHEN state = 'ready' THEN NULL
                   WHEN kind IN ('web.scrape', 'web.map', 'web.crawl')
                   THEN 'nuq.queue_scrape'
                   WHEN kind = 'web.finish' THEN 'nuq.queue_crawl_finished' END
         ELSE queue END),
    (CASE state WHEN 'ready' THEN 'queued'::nuq.job_status
                WHEN 'active' THEN 'active' WHEN 'waiting' THEN 'active'
                WHEN 'completed' THEN 'completed'
                WHEN 'failed' THEN 'failed' WHEN 'cancelled' THEN 'failed' END),
    finished_at)
    WHERE coalesce(group_id, CASE WHEN kind = 'web.crawl' AND queue = 'web' THEN id END) IS NOT NULL;
CREATE INDEX IF NOT EXISTS nuq_backlog_timeout ON windrow.job_live (
    (CASE WHEN state = 'held' THEN nuq.times_out_at(run_at, max_hold_seconds) END))
    WHERE CASE WHEN queue = 'web'
         THEN CASE WHEN kind IN ('web.scrape', 'web.map', 'web.crawl')
                   THEN 'nuq.queue_scrape' END
         ELSE queue END = 'nuq.queue_scrape'
      AND (CASE WHEN state = 'held' THEN nuq.times_out_at(run_at, max_hold_seconds) END) IS NOT NULL;
CREATE INDEX IF NOT EXISTS nuq_backlog_owner ON windrow.job_live (windrow_dialect.as_uuid(tenant))
    WHERE CASE WHEN queue = 'web'
         THEN CASE WHEN kind IN ('web.scrape', 'web.map', 'web.crawl')
                   THEN 'nuq.queue_scrape' END
         ELSE queue END = 'nuq.queue_scrape'
      AND windrow_dialect.as_uuid(tenant) IS NOT NULL;
CREATE INDEX IF NOT EXISTS nuq_ended_live ON windrow.job_live (
    windrow_dialect.as_uuid(substr(unique_key, 17, 36)))
    WHERE CASE WHEN queue = 'web'
         THEN CASE WHEN state = 'ready' THEN NULL
                   WHEN kind IN ('web.scrape', 'web.map', 'web.crawl')
                   THEN 'nuq.queue_scrape'
                   WHEN kind = 'web.finish' THEN 'nuq.queue_crawl_finished' END
         ELSE queue END = 'nuq.queue_crawl_finished'
      AND windrow_dialect.as_uuid(substr(unique_key, 17, 36)) IS NOT NULL;
CREATE INDEX IF NOT EXISTS nuq_ended_finished ON windrow.job_finished (
    windrow_dialect.as_uuid(substr(unique_key, 17, 36)))
    WHERE CASE WHEN queue = 'web'
         THEN CASE WHEN state = 'ready' THEN NULL
                   WHEN kind IN ('web.scrape', 'web.map', 'web.crawl')
                   THEN 'nuq.queue_scrape'
                   WHEN kind = 'web.finish' THEN 'nuq.queue_crawl_finished' END
         ELSE queue END = 'nuq.queue_crawl_finished'
      AND windrow_dialect.as_uuid(substr(unique_key, 17, 36)) IS NOT NULL;
CREATE INDEX IF NOT EXISTS nuq_group ON windrow.job_group (
    (CASE WHEN is_cancelled THEN 'cancelled'::nuq.group_status
          WHEN state = 'active' THEN 'active'
          WHEN state = 'cancelled' THEN 'cancelled'
          ELSE 'completed' END), expires_at);

-- By these the planner leaves the leaves of finished jobs out of claims, renewals and ends.
DO $$
BEGIN
    ALTER TABLE windrow.job_finished ADD CONSTRAINT nuq_status CHECK (
        CASE state WHEN 'ready' THEN 'queued'::nuq.job_status
                   WHEN 'active' THEN 'active' WHEN 'waiting' THEN 'active'
                   WHEN 'completed' THEN 'completed'
                   WHEN 'failed' THEN 'failed' WHEN 'cancelled' THEN 'failed' END
        IN ('completed', 'failed'));
    ALTER TABLE windrow.job_finished ADD CONSTRAINT nuq_lock CHECK (
        CASE WHEN state = 'active' THEN lease END IS NULL);
EXCEPTION WHEN duplicate_object THEN NULL;
END $$;

-- How long NuQ keeps jobs that belong to no group, here from their finish. Who set it otherwise keeps it.
INSERT INTO windrow.queue (name, is_paused, completed_seconds, failed_seconds, cancelled_seconds)
VALUES ('nuq.queue_scrape', false, 3600, 21600, 21600),
       ('nuq.queue_crawl_finished', false, 86400, 86400, 86400)
    ON CONFLICT (name) DO NOTHING;
