-- What was ingested and can be found. `tenant` is empty where there is none. Tenants read their own
-- rows and write them through the gate.
--
-- A collection is searched as one: all of it is embedded by the same model. `generation` is the one
-- that searches read, `next_generation` the one that is being built, with its model.
CREATE TABLE windrow.collection (
    tenant text NOT NULL,
    name text NOT NULL,
    embedder text NOT NULL,
    dimension integer NOT NULL,
    generation integer NOT NULL,
    next_embedder text,
    next_dimension integer,
    next_generation integer,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (tenant, name)
);

-- Where documents come from: a site, a folder, a note … `options` is a JSON object, `tags` an array.
CREATE TABLE windrow.source (
    tenant text NOT NULL,
    id text NOT NULL,
    collection text NOT NULL,
    kind text NOT NULL,
    uri text NOT NULL,
    title text NOT NULL,
    options json NOT NULL,
    tags json NOT NULL,
    refresh_seconds bigint,
    etag text,
    last_modified text,
    error text,
    created_at timestamptz NOT NULL,
    refreshed_at timestamptz,
    PRIMARY KEY (tenant, id)
);

-- A document names the content that is searchable now, and `pending`, which will be once the index
-- has it. Whatever the index has that no document names is not shown.
CREATE TABLE windrow.document (
    id uuid PRIMARY KEY,
    tenant text NOT NULL,
    collection text NOT NULL,
    source text NOT NULL,
    uri text NOT NULL,
    branch text NOT NULL,
    title text NOT NULL,
    language text NOT NULL,
    tags json NOT NULL,
    metadata json NOT NULL,
    content_hash text NOT NULL,
    content uuid,
    pending uuid,
    size bigint NOT NULL,
    skipped text,
    dated_at timestamptz,
    created_at timestamptz NOT NULL,
    changed_at timestamptz NOT NULL
);

CREATE UNIQUE INDEX document_by_place ON windrow.document (tenant, collection, source, uri, branch);
CREATE INDEX document_by_content ON windrow.document (content) WHERE content IS NOT NULL;
CREATE INDEX document_by_pending ON windrow.document (pending) WHERE pending IS NOT NULL;

-- The text of documents. `space` is where in the index its chunks were written last; `dropped_at`
-- says that a document has let go of it: it is removed if no other names it.
CREATE TABLE windrow.content (
    id uuid PRIMARY KEY,
    tenant text NOT NULL,
    collection text NOT NULL,
    chunks integer NOT NULL,
    space text,
    dropped_at timestamptz,
    created_at timestamptz NOT NULL,
    text text NOT NULL
);

CREATE INDEX content_by_collection ON windrow.content (tenant, collection, id);
CREATE INDEX content_dropped ON windrow.content (id) WHERE dropped_at IS NOT NULL;
