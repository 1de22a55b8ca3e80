-- Delete the oldest cached pages, up to limit, of those beyond the newest `most` bytes.
-- takes most int, limit int
-- gives bytes int
DELETE FROM windrow.page
 WHERE key IN (SELECT key
                 FROM (SELECT key, fetched_at,
                              sum(bytes) OVER (ORDER BY fetched_at DESC, key DESC) AS newer
                         FROM windrow.page) AS lined_up
                WHERE newer > :most
                ORDER BY fetched_at, key
                LIMIT :limit)
RETURNING bytes
