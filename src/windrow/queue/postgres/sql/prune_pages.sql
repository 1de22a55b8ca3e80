-- Remove the oldest pages, up to :limit, of what is there beyond the newest :most bytes.
-- Returns bytes of each.
DELETE FROM windrow.page
 WHERE key IN (SELECT key
                 FROM (SELECT key, fetched_at,
                              sum(bytes) OVER (ORDER BY fetched_at DESC, key DESC) AS newer
                         FROM windrow.page) AS lined_up
                WHERE newer > :most::bigint
                ORDER BY fetched_at, key
                LIMIT :limit::integer)
RETURNING bytes
