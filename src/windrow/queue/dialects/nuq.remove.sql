-- Undo the dialect `nuq`. The jobs stay, in their queues, which keep them as all others do, unless somebody
-- has said otherwise since.
UPDATE windrow.queue
   SET completed_seconds = NULL, failed_seconds = NULL, cancelled_seconds = NULL
 WHERE (name, completed_seconds, failed_seconds, cancelled_seconds) IN (
           ('nuq.queue_scrape', 3600, 21600, 21600),
           ('nuq.queue_crawl_finished', 86400, 86400, 86400));
DELETE FROM windrow.queue
 WHERE name IN ('nuq.queue_scrape', 'nuq.queue_crawl_finished') AND NOT is_paused
   AND max_depth IS NULL AND on_full IS NULL AND completed_seconds IS NULL
   AND failed_seconds IS NULL AND cancelled_seconds IS NULL;
DROP SCHEMA IF EXISTS nuq CASCADE;
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_class
                WHERE oid = to_regclass('webhook.crawl_sessions') AND relkind = 'v') THEN
        DROP VIEW webhook.crawl_sessions;
    END IF;
    DROP SCHEMA IF EXISTS webhook;
EXCEPTION WHEN dependent_objects_still_exist THEN NULL;  -- somebody else has tables there
END $$;
ALTER TABLE windrow.job_finished DROP CONSTRAINT IF EXISTS nuq_status;
ALTER TABLE windrow.job_finished DROP CONSTRAINT IF EXISTS nuq_lock;
DROP INDEX IF EXISTS windrow.nuq_status_live;
DROP INDEX IF EXISTS windrow.nuq_status_finished;
DROP INDEX IF EXISTS windrow.nuq_group_live;
DROP INDEX IF EXISTS windrow.nuq_group_finished;
DROP INDEX IF EXISTS windrow.nuq_backlog_timeout;
DROP INDEX IF EXISTS windrow.nuq_backlog_owner;
DROP INDEX IF EXISTS windrow.nuq_ended_live;
DROP INDEX IF EXISTS windrow.nuq_ended_finished;
DROP INDEX IF EXISTS windrow.nuq_group;
