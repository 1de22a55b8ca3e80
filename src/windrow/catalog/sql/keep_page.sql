-- Cache a page in place of an older version; a newer version stays.
-- takes key bytes, tenant text, site text, url text, variant text, etag text, last_modified text,
--   fetched_at time, bytes int, body bytes
INSERT INTO windrow.page AS kept
       (key, tenant, site, url, variant, etag, last_modified, fetched_at, bytes, body)
VALUES (:key, :tenant, :site, :url, :variant, :etag, :last_modified, :fetched_at, :bytes, :body)
ON CONFLICT (key) DO UPDATE SET
    site = excluded.site, etag = excluded.etag, last_modified = excluded.last_modified,
    fetched_at = excluded.fetched_at, bytes = excluded.bytes, body = excluded.body
 WHERE kept.fetched_at <= excluded.fetched_at
