-- The schemas go, and what they hold of queues, topics and notifications. Messages stay: they are jobs.
DROP TRIGGER IF EXISTS pgmq_notify ON windrow.tally;
DROP FUNCTION IF EXISTS public.pgmq_send(text, jsonb, integer);
DROP FUNCTION IF EXISTS public.pgmq_send_batch(text, jsonb[], integer);
DROP FUNCTION IF EXISTS public.pgmq_read(text, integer, integer);
DROP FUNCTION IF EXISTS public.pgmq_pop(text);
DROP FUNCTION IF EXISTS public.pgmq_set_vt(text, bigint, integer);
DROP FUNCTION IF EXISTS public.pgmq_archive(text, bigint, integer);
DROP FUNCTION IF EXISTS public.pgmq_delete(text, bigint, integer);
DROP SCHEMA IF EXISTS pgmq_public CASCADE;
DROP SCHEMA IF EXISTS pgmq CASCADE;
DROP INDEX IF EXISTS windrow.pgmq_number;
DROP INDEX IF EXISTS windrow.pgmq_archive;
DROP INDEX IF EXISTS windrow.pgmq_due;
