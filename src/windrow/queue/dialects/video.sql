-- Videos to be looked into: the table public.clipnest_videos (id, video_url, created_at), an existing one or
-- a new one, whose rows are enqueued in the transaction that inserts them.
--
--   theirs                Windrow
--   a new row             a job of the kind video.scrape in the queue scrape_jobs, unique as video:<id>
--   processing_status     pending → scraping → enriching → done, or failed; written by the jobs themselves.
--                         Set to pending again it is enqueued again, unless it is under way
--   processing_error      why it failed
--   title, summary, topics, transcript, metadata      what came of it
--
-- Rows that were there before have no status and are left alone. With the dialect pgmq the queues are seen
-- as pgmq.q_scrape_jobs, pgmq.a_scrape_jobs, pgmq.q_enrich_jobs and pgmq.a_enrich_jobs.
-- The numbers of attempts are those of the stages in pipelines/video.

CREATE TABLE IF NOT EXISTS public.clipnest_videos (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    video_url text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);
ALTER TABLE public.clipnest_videos
    ADD COLUMN IF NOT EXISTS processing_status text,
    ADD COLUMN IF NOT EXISTS processing_error text,
    ADD COLUMN IF NOT EXISTS title text,
    ADD COLUMN IF NOT EXISTS summary text,
    ADD COLUMN IF NOT EXISTS topics jsonb,
    ADD COLUMN IF NOT EXISTS transcript text,
    ADD COLUMN IF NOT EXISTS metadata jsonb;
-- Not with ADD COLUMN: rows that were there before would get it too.
ALTER TABLE public.clipnest_videos ALTER COLUMN processing_status SET DEFAULT 'pending';
CREATE INDEX IF NOT EXISTS clipnest_videos_status ON public.clipnest_videos (processing_status);

DO $$
DECLARE
    other record;
BEGIN
    SELECT column_name, data_type INTO other
      FROM information_schema.columns
     WHERE table_schema = 'public' AND table_name = 'clipnest_videos'
       AND (column_name IN ('topics', 'metadata') AND data_type <> 'jsonb'
            OR column_name IN ('processing_status', 'processing_error', 'title', 'summary', 'transcript',
                               'video_url')
               AND data_type NOT IN ('text', 'character varying'));
    IF FOUND THEN
        RAISE datatype_mismatch USING MESSAGE = format(
            'clipnest_videos has a column %s of the type %s, which Windrow would write as %s: rename it',
            other.column_name, other.data_type,
            CASE WHEN other.column_name IN ('topics', 'metadata') THEN 'jsonb' ELSE 'text' END);
    END IF;
END
$$;

-- For whoever may insert, who need not be allowed to enqueue.
CREATE OR REPLACE FUNCTION windrow_dialect.enqueue_video() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM windrow_dialect.insert_job(json_build_object(
        'queue', 'scrape_jobs', 'kind', 'video.scrape', 'unique', 'video:' || NEW.id,
        'payload', json_build_object('id', NEW.id, 'video_url', NEW.video_url),
        'max_attempts', 3, 'max_crashes', 4));
    RETURN NULL;
EXCEPTION WHEN unique_violation THEN
    RETURN NULL;  -- it is under way
END
$$;
CREATE OR REPLACE TRIGGER windrow_video_insert AFTER INSERT ON public.clipnest_videos
    FOR EACH ROW WHEN (NEW.processing_status = 'pending')
    EXECUTE FUNCTION windrow_dialect.enqueue_video();
CREATE OR REPLACE TRIGGER windrow_video_again AFTER UPDATE OF processing_status ON public.clipnest_videos
    FOR EACH ROW WHEN (NEW.processing_status = 'pending')
    EXECUTE FUNCTION windrow_dialect.enqueue_video();

-- What is left for the commit runs as whoever commits, who may see nothing of the jobs.
DO $$
DECLARE
    found record;
BEGIN
    FOR found IN SELECT DISTINCT tgfoid::regprocedure::text AS name
                   FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid
                  WHERE relnamespace = 'windrow'::regnamespace AND tgdeferrable AND NOT tgisinternal
    LOOP
        EXECUTE format('ALTER FUNCTION %s SECURITY DEFINER SET search_path = pg_catalog, pg_temp',
                       found.name);
    END LOOP;
END
$$;

DO $$
BEGIN
    IF EXISTS (SELECT FROM windrow.dialect WHERE name = 'pgmq') THEN
        PERFORM pgmq.create('scrape_jobs');
        PERFORM pgmq.create('enrich_jobs');
    END IF;
END
$$;
