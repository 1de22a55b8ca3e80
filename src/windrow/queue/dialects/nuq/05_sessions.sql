-- webhook.crawl_sessions: what each crawl and batch of Windrow's own brought into the index. To be read:
-- it is made of the crawl's job, its group and the notes of that. A table of that name is left alone.
CREATE SCHEMA IF NOT EXISTS webhook;
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_class
                WHERE oid = to_regclass('webhook.crawl_sessions') AND relkind <> 'v') THEN
        RAISE NOTICE 'webhook.crawl_sessions is a table already: it is not replaced';
        RETURN;
    END IF;
    CREATE OR REPLACE VIEW webhook.crawl_sessions WITH (security_invoker = true) AS
    SELECT session.id,
           session.id AS job_id,
           session.tenant,
           coalesce(session.payload ->> 'url', session.payload -> 'urls' ->> 0) AS base_url,
           session.operation_type,
           session.status,
           CASE WHEN session.status <> 'in_progress' THEN session.status = 'completed' END AS success,
           session.members - session.raced AS total_urls,
           session.completed AS completed_urls,
           session.failed - session.raced AS failed_urls,
           session.members - session.raced AS total_pages,
           session.pages_indexed,
           session.failed - session.raced + session.pages_refused AS pages_failed,
           (1000 * coalesce((session.seconds ->> 'chunk')::float8, 0))::float8 AS total_chunking_ms,
           (1000 * coalesce((session.seconds ->> 'embed')::float8, 0))::float8 AS total_embedding_ms,
           (1000 * coalesce((session.seconds ->> 'write')::float8, 0))::float8 AS total_indexing_ms,
           1000 * extract(epoch FROM session.ended_at - session.started_at)::float8 AS duration_ms,
           1000 * extract(epoch FROM greatest(session.ended_at, session.indexed_at)
                                     - session.created_at)::float8 AS e2e_duration_ms,
           true AS auto_index,
           session.created_at,
           session.started_at,
           session.ended_at AS completed_at,
           session.expires_at,
           session.error AS error_message,
           (1000 * coalesce((session.seconds ->> 'write')::float8, 0))::float8 AS total_qdrant_ms,
           0::float8 AS total_bm25_ms,
           session.created_at AS initiated_at,
           NULL::jsonb AS extra_metadata,
           greatest(session.started_at, session.ended_at, session.indexed_at) AS updated_at
      FROM (SELECT root.id, root.tenant, root.created_at, root.started_at, root.error,
                   (SELECT windrow_dialect.as_jsonb(stored.payload)
                      FROM windrow.job_payload AS stored WHERE stored.id = root.id) AS payload,
                   CASE root.kind WHEN 'web.batch' THEN 'batch' ELSE 'crawl' END AS operation_type,
                   CASE WHEN root.state = 'failed' THEN 'failed'
                        WHEN root.state = 'cancelled' OR crawl.state = 'cancelled' THEN 'cancelled'
                        WHEN crawl.ended_at IS NULL THEN 'in_progress'
                        ELSE 'completed' END AS status,
                   crawl.members, crawl.completed, crawl.failed, crawl.ended_at, crawl.expires_at,
                   (SELECT count(*) FROM windrow.job
                     WHERE group_id = crawl.id AND state = 'failed'
                       AND error LIKE '%SCRAPE_RACED_REDIRECT_ERROR%') AS raced,
                   (SELECT count(*) FROM windrow.group_note
                     WHERE group_id = crawl.id AND subject = 'session.indexed') AS pages_indexed,
                   (SELECT count(*) FROM windrow.group_note AS refused
                     WHERE refused.group_id = crawl.id AND refused.subject = 'session.failed'
                       AND NOT EXISTS (
                           SELECT FROM windrow.group_note AS later
                            WHERE later.group_id = crawl.id AND later.subject = 'session.indexed'
                              AND later.text = refused.text)) AS pages_refused,
                   (SELECT max((text::json ->> 'ended_at')::timestamptz) FROM windrow.group_note
                     WHERE group_id = crawl.id AND subject = 'session.seconds') AS indexed_at,
                   (SELECT json_object_agg(step, total)
                      FROM (SELECT spent.key AS step, sum(spent.value::float8) AS total
                              FROM windrow.group_note AS run,
                                   json_each_text(run.text::json -> 'seconds') AS spent
                             WHERE run.group_id = crawl.id AND run.subject = 'session.seconds'
                             GROUP BY spent.key) AS steps) AS seconds
              FROM windrow.job_group AS crawl
              JOIN windrow.job AS root ON root.id = crawl.root
             WHERE root.kind IN ('web.crawl', 'web.batch')
               AND EXISTS (SELECT FROM windrow.group_note AS opened
                            WHERE opened.group_id = crawl.id
                              AND opened.subject = 'session.opened')) AS session;
END $$;
