-- The schemas go, and what they hold of queues, topics and notifications. Messages stay: they are jobs.
-- Their numbers stay with them, and go on from there if the dialect and the queue come again.
-- What is completed from now on is kept as in all other queues; what was archived stays.
UPDATE windrow.queue
   SET completed_seconds = nullif(completed_seconds, -1), failed_seconds = nullif(failed_seconds, -1)
 WHERE -1 IN (completed_seconds, failed_seconds) AND name IN (SELECT queue_name FROM pgmq.meta);
DELETE FROM windrow.queue
 WHERE name IN (SELECT queue_name FROM pgmq.meta) AND NOT is_paused
   AND max_depth IS NULL AND on_full IS NULL AND completed_seconds IS NULL
   AND failed_seconds IS NULL AND cancelled_seconds IS NULL;
DROP TRIGGER IF EXISTS pgmq_number ON windrow.job_live;
DROP TRIGGER IF EXISTS pgmq_number ON windrow.job_finished_kept;
DO $$
DECLARE
    counter regclass;
BEGIN
    FOR counter IN SELECT oid FROM pg_class
                    WHERE relnamespace = 'windrow'::regnamespace AND relkind = 'S'
                      AND relname LIKE '#%' LOOP
        EXECUTE format('DROP SEQUENCE %s', counter);
    END LOOP;
END
$$;
DROP TRIGGER IF EXISTS pgmq_notify ON windrow.tally;
DROP TRIGGER IF EXISTS pgmq_notify ON windrow.tally_told;
DROP FUNCTION IF EXISTS public.pgmq_send(text, jsonb, integer);
DROP FUNCTION IF EXISTS public.pgmq_send_batch(text, jsonb[], integer);
DROP FUNCTION IF EXISTS public.pgmq_read(text, integer, integer);
DROP FUNCTION IF EXISTS public.pgmq_pop(text);
DROP FUNCTION IF EXISTS public.pgmq_set_vt(text, bigint, integer);
DROP FUNCTION IF EXISTS public.pgmq_archive(text, bigint, integer);
DROP FUNCTION IF EXISTS public.pgmq_delete(text, bigint, integer);
DROP SCHEMA IF EXISTS pgmq_public CASCADE;
DROP SCHEMA IF EXISTS pgmq CASCADE;
DROP INDEX IF EXISTS windrow.pgmq_live, windrow.pgmq_archived, windrow.pgmq_scheduled;
