-- Remove the oldest pages, up to :limit, of what is there beyond the newest :most bytes.
-- Returns bytes of each.
DELETE FROM windrow_page
 WHERE key IN (SELECT key
                 FROM (SELECT key, fetched_at,
                              sum(bytes) OVER (ORDER BY fetched_at DESC, key DESC) AS newer
                         FROM windrow_page)
                WHERE newer > :most
                ORDER BY fetched_at, key
                LIMIT :limit)
RETURNING bytes
