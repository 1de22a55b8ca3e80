-- Takes the dialect processing_jobs away. Its jobs stay, in the queue "processing_jobs".
-- With its event triggers, which may belong to somebody else: the schema's owner may drop this.
DROP FUNCTION IF EXISTS windrow_dialect.processing_jobs_index() CASCADE;
ALTER TABLE windrow.job_finished DROP CONSTRAINT IF EXISTS processing_jobs_status;
DROP INDEX IF EXISTS windrow.processing_jobs_ready_idx;
DROP INDEX IF EXISTS windrow.processing_jobs_org_idx;
DROP FUNCTION IF EXISTS windrow_dialect.processing_jobs_edit(
    windrow.job_live, public.processing_jobs, public.processing_jobs);
DROP VIEW IF EXISTS public.processing_jobs;
DROP FUNCTION IF EXISTS windrow_dialect.processing_jobs_insert();
DROP FUNCTION IF EXISTS windrow_dialect.processing_jobs_update();
DROP FUNCTION IF EXISTS windrow_dialect.processing_jobs_delete();
