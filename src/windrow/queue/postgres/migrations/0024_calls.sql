-- Recordings of calls on their way to a transcript and what is made of it. `status` says which stage
-- they are in, `error` why it failed, `note` what is missing of the recording. `analysed_from` names
-- what the analysis, a JSON object, was made of. Only the owner and workers read and write this: no
-- tenant's role is given anything.
CREATE TABLE windrow.call (
    id uuid PRIMARY KEY,
    tenant text NOT NULL,
    collection text NOT NULL,
    name text NOT NULL,
    status text NOT NULL,
    error text,
    seconds double precision,
    note text,
    analysis json,
    analysed_from text,
    created_at timestamptz NOT NULL
);
CREATE INDEX call_tenant ON windrow.call (tenant, created_at);

-- What is kept of a call in the store of artifacts, by the name of its part.
CREATE TABLE windrow.call_artifact (
    call uuid NOT NULL,
    name text NOT NULL,
    key text NOT NULL,
    size bigint NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (call, name)
);
