-- Steps: what parts of a job's runs gave back, so that a later run need not do them again.
CREATE TABLE windrow.job_step (
    at timestamptz NOT NULL,
    job_id uuid NOT NULL,
    name text NOT NULL,
    result json NOT NULL,
    PRIMARY KEY (job_id, name)
);
