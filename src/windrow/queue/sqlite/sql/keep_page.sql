-- Keep a page, in the place of an older version of it; one that is newer stays.
-- :key :tenant :site :url :variant :etag :last_modified :fetched_at :bytes :body
INSERT INTO windrow_page
       (key, tenant, site, url, variant, etag, last_modified, fetched_at, bytes, body)
VALUES (:key, :tenant, :site, :url, :variant, :etag, :last_modified, :fetched_at, :bytes, :body)
ON CONFLICT (key) DO UPDATE SET
    site = excluded.site, etag = excluded.etag, last_modified = excluded.last_modified,
    fetched_at = excluded.fetched_at, bytes = excluded.bytes, body = excluded.body
 WHERE fetched_at <= excluded.fetched_at
