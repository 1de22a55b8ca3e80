-- What came from elsewhere: rows of other queues' tables, by the place they came from and their key
-- there, so that none is taken in twice, whatever has become of its job. Only the owner and workers
-- read and write this: no tenant's role is given anything.
CREATE TABLE windrow.imported (
    origin text NOT NULL,
    key text NOT NULL,
    checksum text NOT NULL,
    job_id uuid,
    imported_at timestamptz NOT NULL,
    PRIMARY KEY (origin, key)
);
