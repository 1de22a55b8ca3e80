-- The page of a key. :key. Returns tenant, url, variant, etag, last_modified, fetched_at, body.
SELECT tenant, url, variant, etag, last_modified, fetched_at, body
  FROM windrow.page
 WHERE key = :key::bytea
