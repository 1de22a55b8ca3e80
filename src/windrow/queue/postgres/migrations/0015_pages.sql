-- What is kept of web pages from one scrape to the next: documents that may be handed out again, and
-- the last version of those whose changes somebody follows. The key is a hash of tenant, url and
-- variant. The body is compressed already. Only workers read and write here; the oldest go first when
-- all of it takes too much room.
CREATE TABLE windrow.page (
    key bytea PRIMARY KEY,
    tenant text,
    url text NOT NULL,
    variant text NOT NULL,
    etag text,
    last_modified text,
    fetched_at timestamptz NOT NULL,
    bytes integer NOT NULL,
    body bytea NOT NULL
);
ALTER TABLE windrow.page ALTER COLUMN body SET STORAGE EXTERNAL;

CREATE INDEX page_by_age ON windrow.page (fetched_at, key) INCLUDE (bytes);
