-- What is kept of web pages from one scrape to the next: documents that may be handed out again, and
-- the last version of those whose changes somebody follows. The key is a hash of tenant, url and
-- variant. The body is compressed already, and stands last: whoever looks for old pages reads none.
CREATE TABLE windrow_page (
  key BLOB PRIMARY KEY,
  tenant TEXT,
  url TEXT NOT NULL,
  variant TEXT NOT NULL,
  etag TEXT,
  last_modified TEXT,
  fetched_at INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  body BLOB NOT NULL
);

CREATE INDEX windrow_page_by_age ON windrow_page (fetched_at, key, bytes);
