-- Undo the dialect `crawl_jobs`. The jobs stay in their queue.
DROP VIEW IF EXISTS public.crawl_jobs CASCADE;
DROP FUNCTION IF EXISTS windrow_dialect.insert_crawl_job();
DROP FUNCTION IF EXISTS windrow_dialect.update_crawl_job();
DROP FUNCTION IF EXISTS windrow_dialect.delete_crawl_job();
DROP FUNCTION IF EXISTS windrow_dialect.tend_crawl_jobs();
ALTER TABLE windrow.job_finished DROP CONSTRAINT IF EXISTS crawl_jobs_status;
DROP INDEX IF EXISTS windrow.crawl_jobs_live;
DROP INDEX IF EXISTS windrow.crawl_jobs_finished;
-- A table of the application's own may have been there before, and use it.
DO $$
BEGIN
    DROP TYPE IF EXISTS public.job_status;
EXCEPTION WHEN dependent_objects_still_exist THEN NULL;
END $$;
