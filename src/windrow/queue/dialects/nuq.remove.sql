-- Undo the dialect `nuq`. The jobs stay, in their queues; so does how long these keep them.
DROP SCHEMA IF EXISTS nuq CASCADE;
ALTER TABLE windrow.job_finished DROP CONSTRAINT IF EXISTS nuq_status;
ALTER TABLE windrow.job_finished DROP CONSTRAINT IF EXISTS nuq_lock;
DROP INDEX IF EXISTS windrow.nuq_live;
DROP INDEX IF EXISTS windrow.nuq_finished;
DROP INDEX IF EXISTS windrow.nuq_backlog;
DROP INDEX IF EXISTS windrow.nuq_owner;
DROP INDEX IF EXISTS windrow.nuq_crawl_finished_live;
DROP INDEX IF EXISTS windrow.nuq_crawl_finished;
DROP INDEX IF EXISTS windrow.nuq_group;
