-- What was ingested and can be found. `tenant` is empty where there is none.
--
-- A collection is searched as one: all of it is embedded by the same model. `generation` is the one
-- that searches read, `next_generation` the one that is being built, with its model.
CREATE TABLE windrow_collection (
  tenant TEXT NOT NULL,
  name TEXT NOT NULL,
  embedder TEXT NOT NULL,
  dimension INTEGER NOT NULL,
  generation INTEGER NOT NULL,
  next_embedder TEXT,
  next_dimension INTEGER,
  next_generation INTEGER,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (tenant, name)
) WITHOUT ROWID;

-- Where documents come from: a site, a folder, a note … `options` is a JSON object, `tags` an array.
CREATE TABLE windrow_source (
  tenant TEXT NOT NULL,
  id TEXT NOT NULL,
  collection TEXT NOT NULL,
  kind TEXT NOT NULL,
  uri TEXT NOT NULL,
  title TEXT NOT NULL,
  options TEXT NOT NULL,
  tags TEXT NOT NULL,
  refresh_seconds INTEGER,
  etag TEXT,
  last_modified TEXT,
  error TEXT,
  created_at INTEGER NOT NULL,
  refreshed_at INTEGER,
  PRIMARY KEY (tenant, id)
) WITHOUT ROWID;

-- A document names the content that is searchable now, and `pending`, which will be once the index
-- has it. Whatever the index has that no document names is not shown.
CREATE TABLE windrow_document (
  id TEXT PRIMARY KEY,
  tenant TEXT NOT NULL,
  collection TEXT NOT NULL,
  source TEXT NOT NULL,
  uri TEXT NOT NULL,
  branch TEXT NOT NULL,
  title TEXT NOT NULL,
  language TEXT NOT NULL,
  tags TEXT NOT NULL,
  metadata TEXT NOT NULL,
  content_hash TEXT NOT NULL,
  content TEXT,
  pending TEXT,
  size INTEGER NOT NULL,
  skipped TEXT,
  dated_at INTEGER,
  created_at INTEGER NOT NULL,
  changed_at INTEGER NOT NULL
);

CREATE UNIQUE INDEX windrow_document_by_place
    ON windrow_document (tenant, collection, source, uri, branch);
CREATE INDEX windrow_document_by_content ON windrow_document (content) WHERE content IS NOT NULL;
CREATE INDEX windrow_document_by_pending ON windrow_document (pending) WHERE pending IS NOT NULL;

-- The text of documents. `space` is where in the index its chunks were written last; `dropped_at`
-- says that a document has let go of it: it is removed if no other names it.
CREATE TABLE windrow_content (
  id TEXT PRIMARY KEY,
  tenant TEXT NOT NULL,
  collection TEXT NOT NULL,
  chunks INTEGER NOT NULL,
  space TEXT,
  dropped_at INTEGER,
  created_at INTEGER NOT NULL,
  text TEXT NOT NULL
);

CREATE INDEX windrow_content_by_collection ON windrow_content (tenant, collection, id);
CREATE INDEX windrow_content_dropped ON windrow_content (id) WHERE dropped_at IS NOT NULL;
