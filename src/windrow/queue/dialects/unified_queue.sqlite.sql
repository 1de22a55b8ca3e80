-- The dialect `unified_queue` on SQLite: one ingestion queue, told apart by item_type and op.
--
-- Unlike every other dialect this is a table, with the CHECKs, the unique key and the seven indexes of
-- the original, because SQLite cannot write through a view with UPSERT or RETURNING. What is in it is
-- also in Windrow's tables; triggers on both sides keep them in step, in the same transaction.
--
--   queue_id            id; any other text is kept beside it, in windrow_unified_job
--   item_type, op       kind, with a dot between: file.ingest
--   tenant_id           tenant ('' for none)
--   collection, branch, metadata   headers of the same names
--   priority            priority
--   status              pending: ready or scheduled · in_progress: active · done: completed ·
--                       failed: failed or cancelled. What is nobody's to take through this table
--                       (held, paused, waiting, in a group, with limits) is in_progress too, and its
--                       worker_id says why: windrow:paused
--   lease_until         until when the lease lasts; of a pending row, when it is due
--   worker_id           worker of the lease, there with unified_queue: before it
--   idempotency_key     unique_key; windrow:<id> for a job without one, or whose key is taken here. A
--                       row that is done or failed gives its key to a new one, and is windrow:<id> then
--   payload_json        payload
--   retry_count         attempts + crashes
--   max_retries         max_attempts - 1 and max_crashes - 1
--   error_message       error
--   last_error_at       the last line of the error history
--
-- Jobs whose kind is no pair of item_type and op, or whose priority is not 0 to 10, are not shown.
-- A row that a Windrow worker holds cannot be changed from here, and a lease that lasts cannot be
-- taken by another worker: such an update changes nothing.

CREATE TABLE IF NOT EXISTS unified_queue (
  queue_id TEXT PRIMARY KEY NOT NULL,
  item_type TEXT NOT NULL CHECK (item_type IN (
    'content', 'file', 'folder', 'project', 'library', 'delete_tenant', 'delete_document', 'rename'
  )),
  op TEXT NOT NULL CHECK (op IN ('ingest', 'update', 'delete', 'scan')),
  tenant_id TEXT NOT NULL,
  collection TEXT NOT NULL,
  priority INTEGER NOT NULL DEFAULT 5 CHECK (priority BETWEEN 0 AND 10),
  status TEXT NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'in_progress', 'done', 'failed')),
  created_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
  updated_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
  lease_until TEXT,
  worker_id TEXT,
  idempotency_key TEXT NOT NULL UNIQUE,
  payload_json TEXT NOT NULL CHECK (json_valid(payload_json)),
  retry_count INTEGER NOT NULL DEFAULT 0,
  max_retries INTEGER NOT NULL DEFAULT 3,
  error_message TEXT,
  last_error_at TEXT,
  branch TEXT DEFAULT 'main',
  metadata TEXT DEFAULT '{}',
  CHECK (CASE
    WHEN item_type IN ('content', 'file', 'library') THEN op IN ('ingest', 'update', 'delete')
    WHEN item_type IN ('folder', 'project') THEN op IN ('ingest', 'delete', 'scan')
    WHEN item_type IN ('delete_tenant', 'delete_document') THEN op = 'delete'
    WHEN item_type = 'rename' THEN op = 'update'
    ELSE 0
  END)
);
CREATE INDEX IF NOT EXISTS idx_unified_queue_dequeue
  ON unified_queue (status, priority DESC, created_at);
CREATE UNIQUE INDEX IF NOT EXISTS idx_unified_queue_idempotency ON unified_queue (idempotency_key);
CREATE INDEX IF NOT EXISTS idx_unified_queue_lease_expiry
  ON unified_queue (lease_until) WHERE status = 'in_progress';
CREATE INDEX IF NOT EXISTS idx_unified_queue_collection_tenant
  ON unified_queue (collection, tenant_id);
CREATE INDEX IF NOT EXISTS idx_unified_queue_item_type ON unified_queue (item_type, status);
CREATE INDEX IF NOT EXISTS idx_unified_queue_failed
  ON unified_queue (status, last_error_at) WHERE status = 'failed';
CREATE INDEX IF NOT EXISTS idx_unified_queue_worker
  ON unified_queue (worker_id, status) WHERE status = 'in_progress';

-- Which job a row is. `packed` is the id in 16 bytes, as events have it.
CREATE TABLE IF NOT EXISTS windrow_unified_job (
  queue_id TEXT PRIMARY KEY NOT NULL,
  id TEXT NOT NULL UNIQUE,
  seq INTEGER UNIQUE,
  packed BLOB
);

-- The kinds that are pairs of an item type and an operation.
CREATE TABLE IF NOT EXISTS windrow_unified_kind (
  kind TEXT PRIMARY KEY,
  item_type TEXT NOT NULL,
  op TEXT NOT NULL
) WITHOUT ROWID;
INSERT OR REPLACE INTO windrow_unified_kind (kind, item_type, op)
SELECT t.value || '.' || o.value, t.value, o.value
FROM json_each('["content","file","library"]') AS t, json_each('["ingest","update","delete"]') AS o
UNION ALL
SELECT t.value || '.' || o.value, t.value, o.value
FROM json_each('["folder","project"]') AS t, json_each('["ingest","delete","scan"]') AS o
UNION ALL
SELECT t.value || '.delete', t.value, 'delete'
FROM json_each('["delete_tenant","delete_document"]') AS t
UNION ALL
SELECT 'rename.update', 'rename', 'update';

-- Has a row while one side is being written from the other, whose triggers then do nothing.
CREATE TABLE IF NOT EXISTS windrow_unified_busy (is_busy INTEGER PRIMARY KEY);

-- All bytes in order: SQLite before 3.41 cannot make bytes of digits.
CREATE TABLE IF NOT EXISTS windrow_unified_byte (bytes BLOB NOT NULL);
DELETE FROM windrow_unified_byte;
INSERT INTO windrow_unified_byte (bytes) VALUES (
  CAST(
    x'000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f'
    || x'202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f'
    || x'404142434445464748494a4b4c4d4e4f505152535455565758595a5b5c5d5e5f'
    || x'606162636465666768696a6b6c6d6e6f707172737475767778797a7b7c7d7e7f'
    || x'808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f'
    || x'a0a1a2a3a4a5a6a7a8a9aaabacadaeafb0b1b2b3b4b5b6b7b8b9babbbcbdbebf'
    || x'c0c1c2c3c4c5c6c7c8c9cacbcccdcecfd0d1d2d3d4d5d6d7d8d9dadbdcdddedf'
    || x'e0e1e2e3e4e5e6e7e8e9eaebecedeeeff0f1f2f3f4f5f6f7f8f9fafbfcfdfeff'
    AS BLOB
  )
);

-- The triggers that were here before go with their views, or by name.
DROP TRIGGER IF EXISTS unified_queue_check_insert;
DROP TRIGGER IF EXISTS unified_queue_check_update;
DROP TRIGGER IF EXISTS unified_queue_check_insert_times;
DROP TRIGGER IF EXISTS unified_queue_check_update_times;
DROP TRIGGER IF EXISTS unified_queue_free_key;
DROP TRIGGER IF EXISTS unified_queue_insert;
DROP TRIGGER IF EXISTS unified_queue_refuse;
DROP TRIGGER IF EXISTS unified_queue_refuse_delete;
DROP TRIGGER IF EXISTS unified_queue_start;
DROP TRIGGER IF EXISTS unified_queue_renew;
DROP TRIGGER IF EXISTS unified_queue_return;
DROP TRIGGER IF EXISTS unified_queue_end;
DROP TRIGGER IF EXISTS unified_queue_retry;
DROP TRIGGER IF EXISTS unified_queue_due;
DROP TRIGGER IF EXISTS unified_queue_edit;
DROP TRIGGER IF EXISTS unified_queue_delete;
DROP TRIGGER IF EXISTS windrow_unified_job_insert;
DROP TRIGGER IF EXISTS windrow_unified_payload_insert;
DROP TRIGGER IF EXISTS windrow_unified_payload_update;
DROP TRIGGER IF EXISTS windrow_unified_live_update;
DROP TRIGGER IF EXISTS windrow_unified_live_delete;
DROP TRIGGER IF EXISTS windrow_unified_finished_update;
DROP TRIGGER IF EXISTS windrow_unified_finished_delete;
DROP TRIGGER IF EXISTS windrow_unified_lease_insert;
DROP TRIGGER IF EXISTS windrow_unified_lease_update;
DROP VIEW IF EXISTS windrow_unified_mirror;
DROP VIEW IF EXISTS windrow_unified_start;
DROP VIEW IF EXISTS windrow_unified_end;
DROP VIEW IF EXISTS windrow_unified_release;
DROP VIEW IF EXISTS windrow_unified_gone;
DROP VIEW IF EXISTS windrow_unified_replaced;
DROP VIEW IF EXISTS windrow_unified_row;
DROP VIEW IF EXISTS windrow_unified_clock;

-- Now, as Windrow's tables have it and as this one does.
CREATE VIEW windrow_unified_clock AS
SELECT
  CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 AS now,
  strftime('%Y-%m-%dT%H:%M:%fZ', 'now') AS text;

-- The jobs as rows of unified_queue. For a moment, while it is moved, a job is there twice.
CREATE VIEW windrow_unified_row AS
SELECT
  j.seq, j.id, k.item_type, k.op, ifnull(j.tenant, '') AS tenant_id,
  ifnull(json_extract(p.headers, '$.collection'), '') AS collection, j.priority,
  CASE
    WHEN j.state IN ('ready', 'scheduled') AND j.group_id IS NULL AND j.root_of IS NULL
      AND j.limit_keys IS NULL THEN 'pending'
    ELSE 'in_progress'
  END AS status,
  strftime('%Y-%m-%dT%H:%M:%fZ', j.created_at / 1000000.0, 'unixepoch') AS created_at,
  CASE j.state
    WHEN 'scheduled' THEN strftime('%Y-%m-%dT%H:%M:%fZ', j.run_at / 1000000.0, 'unixepoch')
    WHEN 'active' THEN strftime('%Y-%m-%dT%H:%M:%fZ', l.expires_at / 1000000.0, 'unixepoch')
  END AS lease_until,
  CASE
    WHEN j.state = 'active' AND l.worker LIKE 'unified\_queue:%' ESCAPE '\' THEN substr(l.worker, 15)
    WHEN j.state = 'active' THEN l.worker
    WHEN j.state NOT IN ('ready', 'scheduled') THEN 'windrow:' || j.state
    WHEN j.group_id IS NOT NULL OR j.root_of IS NOT NULL THEN 'windrow:group'
    WHEN j.limit_keys IS NOT NULL THEN 'windrow:limits'
  END AS worker_id,
  j.unique_key, p.payload AS payload_json, j.attempts + j.crashes AS retry_count,
  j.max_attempts - 1 AS max_retries, j.error AS error_message,
  (
    SELECT strftime('%Y-%m-%dT%H:%M:%fZ', max(e.at) / 1000000.0, 'unixepoch')
    FROM windrow_job_error AS e WHERE e.seq = j.seq
  ) AS last_error_at,
  ifnull(json_extract(p.headers, '$.branch'), 'main') AS branch,
  ifnull(json_extract(p.headers, '$.metadata'), '{}') AS metadata
FROM windrow_job_live AS j
CROSS JOIN windrow_job_payload AS p ON p.seq = j.seq
CROSS JOIN windrow_unified_kind AS k ON k.kind = j.kind
LEFT JOIN windrow_lease AS l ON l.token = j.lease
WHERE j.queue = 'unified_queue' AND j.is_follower = 0 AND j.priority BETWEEN 0 AND 10
UNION ALL
SELECT
  j.seq, j.id, k.item_type, k.op, ifnull(j.tenant, ''),
  ifnull(json_extract(p.headers, '$.collection'), ''), j.priority,
  CASE j.state WHEN 'completed' THEN 'done' ELSE 'failed' END,
  strftime('%Y-%m-%dT%H:%M:%fZ', j.created_at / 1000000.0, 'unixepoch'), NULL, NULL,
  j.unique_key, p.payload, j.attempts + j.crashes, j.max_attempts - 1,
  CASE WHEN j.state = 'cancelled' THEN ifnull(j.error, 'cancelled') ELSE j.error END,
  (
    SELECT strftime('%Y-%m-%dT%H:%M:%fZ', max(e.at) / 1000000.0, 'unixepoch')
    FROM windrow_job_error AS e WHERE e.seq = j.seq
  ),
  ifnull(json_extract(p.headers, '$.branch'), 'main'),
  ifnull(json_extract(p.headers, '$.metadata'), '{}')
FROM windrow_job_finished AS j
CROSS JOIN windrow_job_payload AS p ON p.seq = j.seq
CROSS JOIN windrow_unified_kind AS k ON k.kind = j.kind
WHERE j.queue = 'unified_queue' AND j.is_follower = 0 AND j.priority BETWEEN 0 AND 10;

-- As events have it: 16 bytes.
CREATE TRIGGER windrow_unified_job_insert AFTER INSERT ON windrow_unified_job
BEGIN
  UPDATE windrow_unified_job
  SET packed = (
    WITH RECURSIVE packing (done, bytes) AS (
      SELECT 0, CAST('' AS BLOB)
      UNION ALL
      SELECT done + 1, CAST(
        bytes || substr(
          (SELECT bytes FROM windrow_unified_byte),
          16 * (instr('0123456789abcdef', substr(replace(NEW.id, '-', ''), 2 * done + 1, 1)) - 1)
          + instr('0123456789abcdef', substr(replace(NEW.id, '-', ''), 2 * done + 2, 1)),
          1
        ) AS BLOB
      )
      FROM packing WHERE done < 16
    )
    SELECT bytes FROM packing WHERE done = 16
  )
  WHERE queue_id = NEW.queue_id;
END;

-- From Windrow's tables to unified_queue. Insert a job's seq here to have its row written anew.
CREATE VIEW windrow_unified_mirror AS SELECT seq FROM windrow_unified_job;

CREATE TRIGGER windrow_unified_mirror_insert INSTEAD OF INSERT ON windrow_unified_mirror
BEGIN
  INSERT OR IGNORE INTO windrow_unified_busy (is_busy) VALUES (2);
  DELETE FROM unified_queue
  WHERE queue_id = (SELECT queue_id FROM windrow_unified_job WHERE seq = NEW.seq)
    AND NOT EXISTS (SELECT 1 FROM windrow_unified_row WHERE seq = NEW.seq);
  DELETE FROM windrow_unified_job
  WHERE seq = NEW.seq AND NOT EXISTS (SELECT 1 FROM windrow_unified_row WHERE seq = NEW.seq);
  INSERT INTO windrow_unified_job (queue_id, id, seq)
  SELECT r.id, r.id, r.seq FROM windrow_unified_row AS r
  WHERE r.seq = NEW.seq AND NOT EXISTS (SELECT 1 FROM windrow_unified_job WHERE seq = NEW.seq)
  LIMIT 1;
  UPDATE unified_queue
  SET idempotency_key = 'windrow:' || (
    SELECT w.id FROM windrow_unified_job AS w WHERE w.queue_id = unified_queue.queue_id
  )
  WHERE status IN ('done', 'failed')
    AND idempotency_key = (SELECT unique_key FROM windrow_job_live WHERE seq = NEW.seq)
    AND queue_id <> (SELECT queue_id FROM windrow_unified_job WHERE seq = NEW.seq);
  INSERT INTO unified_queue (
    queue_id, item_type, op, tenant_id, collection, priority, status, created_at, updated_at,
    lease_until, worker_id, idempotency_key, payload_json, retry_count, max_retries, error_message,
    last_error_at, branch, metadata
  )
  SELECT
    w.queue_id, r.item_type, r.op, r.tenant_id, r.collection, r.priority, r.status, r.created_at,
    (SELECT text FROM windrow_unified_clock), r.lease_until, r.worker_id,
    CASE
      WHEN r.unique_key IS NULL
        OR EXISTS (SELECT 1 FROM unified_queue AS u WHERE u.idempotency_key = r.unique_key)
        THEN 'windrow:' || r.id
      ELSE r.unique_key
    END,
    r.payload_json, r.retry_count, r.max_retries, r.error_message, r.last_error_at, r.branch,
    r.metadata
  FROM windrow_unified_job AS w CROSS JOIN windrow_unified_row AS r ON r.seq = w.seq
  WHERE w.seq = NEW.seq
  LIMIT 1
  ON CONFLICT (queue_id) DO UPDATE SET
    item_type = excluded.item_type, op = excluded.op, tenant_id = excluded.tenant_id,
    collection = excluded.collection, priority = excluded.priority, status = excluded.status,
    updated_at = excluded.updated_at,
    lease_until = CASE
      WHEN excluded.status IN ('done', 'failed') THEN lease_until ELSE excluded.lease_until
    END,
    worker_id = CASE
      WHEN excluded.status IN ('done', 'failed') THEN worker_id ELSE excluded.worker_id
    END,
    -- A row that had given its key away has it again when it waits again.
    idempotency_key = CASE
      WHEN excluded.idempotency_key LIKE 'windrow:%' THEN idempotency_key
      ELSE excluded.idempotency_key
    END,
    payload_json = excluded.payload_json, retry_count = excluded.retry_count,
    max_retries = excluded.max_retries, error_message = excluded.error_message,
    last_error_at = excluded.last_error_at, branch = excluded.branch, metadata = excluded.metadata;
  DELETE FROM windrow_unified_busy WHERE is_busy = 2;
END;

CREATE TRIGGER windrow_unified_payload_insert AFTER INSERT ON windrow_job_payload
WHEN NOT EXISTS (SELECT 1 FROM windrow_unified_busy)
  AND EXISTS (SELECT 1 FROM windrow_job WHERE seq = NEW.seq AND queue = 'unified_queue')
BEGIN
  INSERT INTO windrow_unified_mirror (seq) VALUES (NEW.seq);
END;

CREATE TRIGGER windrow_unified_payload_update AFTER UPDATE ON windrow_job_payload
WHEN NOT EXISTS (SELECT 1 FROM windrow_unified_busy)
  AND EXISTS (SELECT 1 FROM windrow_job WHERE seq = NEW.seq AND queue = 'unified_queue')
BEGIN
  INSERT INTO windrow_unified_mirror (seq) VALUES (NEW.seq);
END;

-- A job that is claimed is written when its lease is there.
CREATE TRIGGER windrow_unified_live_update AFTER UPDATE ON windrow_job_live
WHEN (NEW.queue = 'unified_queue' OR OLD.queue = 'unified_queue')
  AND NOT (NEW.state = 'active' AND OLD.state = 'ready')
  AND NOT EXISTS (SELECT 1 FROM windrow_unified_busy)
BEGIN
  INSERT INTO windrow_unified_mirror (seq) VALUES (NEW.seq);
END;

CREATE TRIGGER windrow_unified_live_delete AFTER DELETE ON windrow_job_live
WHEN OLD.queue = 'unified_queue' AND NOT EXISTS (SELECT 1 FROM windrow_unified_busy)
BEGIN
  INSERT INTO windrow_unified_mirror (seq) VALUES (OLD.seq);
END;

CREATE TRIGGER windrow_unified_finished_update AFTER UPDATE ON windrow_job_finished
WHEN (NEW.queue = 'unified_queue' OR OLD.queue = 'unified_queue')
  AND NOT EXISTS (SELECT 1 FROM windrow_unified_busy)
BEGIN
  INSERT INTO windrow_unified_mirror (seq) VALUES (NEW.seq);
END;

CREATE TRIGGER windrow_unified_finished_delete AFTER DELETE ON windrow_job_finished
WHEN OLD.queue = 'unified_queue' AND NOT EXISTS (SELECT 1 FROM windrow_unified_busy)
BEGIN
  INSERT INTO windrow_unified_mirror (seq) VALUES (OLD.seq);
END;

CREATE TRIGGER windrow_unified_lease_insert AFTER INSERT ON windrow_lease
WHEN NOT EXISTS (SELECT 1 FROM windrow_unified_busy)
BEGIN
  INSERT INTO windrow_unified_mirror (seq)
  SELECT w.seq FROM json_each(NEW.job_seqs) AS held
  CROSS JOIN windrow_unified_job AS w ON w.seq = held.value;
END;

CREATE TRIGGER windrow_unified_lease_update AFTER UPDATE OF expires_at ON windrow_lease
WHEN NOT EXISTS (SELECT 1 FROM windrow_unified_busy)
BEGIN
  INSERT INTO windrow_unified_mirror (seq)
  SELECT w.seq FROM json_each(NEW.job_seqs) AS held
  CROSS JOIN windrow_unified_job AS w ON w.seq = held.value
  CROSS JOIN windrow_job_live AS j ON j.seq = w.seq
  WHERE j.state = 'active' AND j.lease = NEW.token;
END;

-- From unified_queue to Windrow's tables. What a trigger below wants done is inserted here.

-- The lease of a job no longer holds it.
CREATE VIEW windrow_unified_release AS SELECT seq FROM windrow_unified_job;

CREATE TRIGGER windrow_unified_release_insert INSTEAD OF INSERT ON windrow_unified_release
BEGIN
  UPDATE windrow_lease SET pending = pending - 1
  WHERE token = (SELECT lease FROM windrow_job_live WHERE seq = NEW.seq AND state = 'active');
  DELETE FROM windrow_lease
  WHERE token = (SELECT lease FROM windrow_job_live WHERE seq = NEW.seq AND state = 'active')
    AND pending <= 0;
END;

-- A job becomes active under a lease of its own.
CREATE VIEW windrow_unified_start AS
SELECT seq, '' AS worker, 0 AS until FROM windrow_unified_job;

CREATE TRIGGER windrow_unified_start_insert INSTEAD OF INSERT ON windrow_unified_start
BEGIN
  INSERT INTO windrow_unified_release (seq) VALUES (NEW.seq);
  INSERT INTO windrow_tally (queue, state, count)
  SELECT queue, state, -1 FROM windrow_job_live WHERE seq = NEW.seq
  ON CONFLICT (queue, state) DO UPDATE SET count = count + excluded.count;
  INSERT INTO windrow_tally (queue, state, count) VALUES ('unified_queue', 'active', 1)
  ON CONFLICT (queue, state) DO UPDATE SET count = count + excluded.count;
  UPDATE windrow_job_live
  SET state = 'active', lease = lower(hex(randomblob(16))), runs = runs + 1, stop_as = NULL,
    started_at = (SELECT now FROM windrow_unified_clock)
  WHERE seq = NEW.seq;
  INSERT INTO windrow_lease (token, worker, seconds, claimed_at, expires_at, pending, job_seqs)
  SELECT
    j.lease, 'unified_queue:' || ifnull(NEW.worker, ''), max(1, (NEW.until - c.now) / 1000000),
    c.now, NEW.until, 1, json_array(j.seq)
  FROM windrow_job_live AS j, windrow_unified_clock AS c WHERE j.seq = NEW.seq;
  INSERT INTO windrow_event (at, type, state, queue, kind, tenant, group_id, job_ids)
  SELECT c.now, 'job.started', 'active', j.queue, j.kind, j.tenant, j.group_id, w.packed
  FROM windrow_job_live AS j, windrow_unified_job AS w, windrow_unified_clock AS c
  WHERE j.seq = NEW.seq AND w.seq = NEW.seq;
END;

-- A live job ends; the follower of its key takes its place.
CREATE VIEW windrow_unified_end AS
SELECT seq, '' AS state, '' AS error FROM windrow_unified_job;

CREATE TRIGGER windrow_unified_end_insert INSTEAD OF INSERT ON windrow_unified_end
BEGIN
  INSERT INTO windrow_unified_release (seq) VALUES (NEW.seq);
  INSERT INTO windrow_tally (queue, state, count)
  SELECT queue, state, -1 FROM windrow_job_live WHERE seq = NEW.seq
  ON CONFLICT (queue, state) DO UPDATE SET count = count + excluded.count;
  INSERT INTO windrow_tally (queue, state, count) VALUES ('unified_queue', NEW.state, 1)
  ON CONFLICT (queue, state) DO UPDATE SET count = count + excluded.count;
  INSERT INTO windrow_job_finished (
    seq, id, queue, kind, state, priority, run_at, created_at, started_at, finished_at, expires_at,
    attempts, crashes, runs, max_attempts, max_crashes, lease, lease_seconds, retention_seconds,
    tenant, unique_key, error, place
  )
  SELECT
    seq, id, queue, kind, NEW.state, priority, run_at, created_at, started_at, now,
    CASE WHEN seconds < 0 THEN NULL ELSE now + seconds * 1000000 END,
    attempts, crashes, runs, max_attempts, max_crashes, lease, lease_seconds, retention_seconds,
    tenant, unique_key, NEW.error, place
  FROM (
    SELECT j.*, c.now, coalesce(
      j.retention_seconds,
      (
        SELECT CASE NEW.state
          WHEN 'completed' THEN q.completed_seconds
          WHEN 'failed' THEN q.failed_seconds
          ELSE q.cancelled_seconds
        END
        FROM windrow_queue AS q WHERE q.name = j.queue
      ),
      CASE NEW.state WHEN 'failed' THEN 604800 ELSE 86400 END
    ) AS seconds
    FROM windrow_job_live AS j, windrow_unified_clock AS c WHERE j.seq = NEW.seq
  );
  DELETE FROM windrow_job_live WHERE seq = NEW.seq;
  INSERT INTO windrow_event (at, type, state, queue, kind, tenant, job_ids)
  SELECT j.finished_at, 'job.finished', j.state, j.queue, j.kind, j.tenant, w.packed
  FROM windrow_job_finished AS j, windrow_unified_job AS w WHERE j.seq = NEW.seq AND w.seq = NEW.seq;
  -- Counted where it goes before it is moved, while it can still be found as a follower.
  INSERT INTO windrow_tally (queue, state, count)
  SELECT f.queue, moved.state, moved.count
  FROM windrow_job_finished AS j
  CROSS JOIN windrow_job_live AS f INDEXED BY windrow_job_live_unique
    ON f.unique_key = j.unique_key AND ifnull(f.tenant, x'') = ifnull(j.tenant, x'')
  CROSS JOIN (
    SELECT 'held' AS state, -1 AS count
    UNION ALL SELECT 'scheduled', 1 UNION ALL SELECT 'ready', 1
  ) AS moved
  CROSS JOIN windrow_unified_clock AS c
  WHERE j.seq = NEW.seq AND f.is_follower = 1 AND f.state = 'held' AND f.limit_keys IS NULL
    AND (moved.state = 'held' OR (moved.state = 'scheduled') = (f.run_at > c.now))
  ON CONFLICT (queue, state) DO UPDATE SET count = count + excluded.count;
  UPDATE windrow_job_live
  SET is_follower = 0,
    state = CASE
      WHEN state <> 'held' OR limit_keys IS NOT NULL THEN state
      WHEN run_at > (SELECT now FROM windrow_unified_clock) THEN 'scheduled'
      ELSE 'ready'
    END
  WHERE seq IN (
    SELECT f.seq
    FROM windrow_job_finished AS j
    CROSS JOIN windrow_job_live AS f INDEXED BY windrow_job_live_unique
      ON f.unique_key = j.unique_key AND ifnull(f.tenant, x'') = ifnull(j.tenant, x'')
    WHERE j.seq = NEW.seq AND f.is_follower = 1
  );
  INSERT INTO windrow_unified_mirror (seq)
  SELECT f.seq
  FROM windrow_job_finished AS j
  CROSS JOIN windrow_job_live AS f INDEXED BY windrow_job_live_unique
    ON f.unique_key = j.unique_key AND ifnull(f.tenant, x'') = ifnull(j.tenant, x'')
  WHERE j.seq = NEW.seq AND f.queue = 'unified_queue';
END;

-- A job goes without a trace. A live one ends first, so that its lease and its key are free.
CREATE VIEW windrow_unified_gone AS SELECT seq FROM windrow_unified_job;

CREATE TRIGGER windrow_unified_gone_insert INSTEAD OF INSERT ON windrow_unified_gone
BEGIN
  INSERT INTO windrow_unified_end (seq, state, error)
  SELECT seq, 'cancelled', 'deleted' FROM windrow_job_live WHERE seq = NEW.seq AND state = 'active';
  INSERT INTO windrow_tally (queue, state, count)
  SELECT queue, state, -1 FROM windrow_job WHERE seq = NEW.seq
  ON CONFLICT (queue, state) DO UPDATE SET count = count + excluded.count;
  DELETE FROM windrow_job_live WHERE seq = NEW.seq;
  DELETE FROM windrow_job_finished WHERE seq = NEW.seq;
  DELETE FROM windrow_job_payload WHERE seq = NEW.seq;
  DELETE FROM windrow_job_error WHERE seq = NEW.seq;
  DELETE FROM windrow_job_progress WHERE seq = NEW.seq;
  DELETE FROM windrow_job_result WHERE seq = NEW.seq;
  DELETE FROM windrow_job_step WHERE seq = NEW.seq;
  DELETE FROM windrow_unified_job WHERE seq = NEW.seq;
END;

-- Times that Python, which reads them, does not know.
CREATE TRIGGER unified_queue_check_insert_times BEFORE INSERT ON unified_queue
WHEN 1721426.5 > min(
    ifnull(julianday(NEW.created_at), 1721426.5), ifnull(julianday(NEW.lease_until), 1721426.5)
  )
  AND NOT EXISTS (SELECT 1 FROM windrow_unified_busy)
BEGIN
  SELECT RAISE(ABORT, 'a time of unified_queue lies before the year 1');
END;

CREATE TRIGGER unified_queue_check_update_times
BEFORE UPDATE OF created_at, lease_until, last_error_at ON unified_queue
WHEN 1721426.5 > min(
    ifnull(julianday(NEW.created_at), 1721426.5), ifnull(julianday(NEW.lease_until), 1721426.5),
    ifnull(julianday(NEW.last_error_at), 1721426.5)
  )
  AND NOT EXISTS (SELECT 1 FROM windrow_unified_busy)
BEGIN
  SELECT RAISE(ABORT, 'a time of unified_queue lies before the year 1');
END;

CREATE TRIGGER unified_queue_check_insert BEFORE INSERT ON unified_queue
WHEN (NEW.tenant_id = '' OR NEW.collection = '')
  AND NOT EXISTS (SELECT 1 FROM windrow_unified_busy)
BEGIN
  SELECT RAISE(ABORT, 'tenant_id of unified_queue must not be empty') WHERE NEW.tenant_id = '';
  SELECT RAISE(ABORT, 'collection of unified_queue must not be empty');
END;

CREATE TRIGGER unified_queue_check_update BEFORE UPDATE OF tenant_id, collection ON unified_queue
WHEN ((NEW.tenant_id = '' AND OLD.tenant_id <> '') OR (NEW.collection = '' AND OLD.collection <> ''))
  AND NOT EXISTS (SELECT 1 FROM windrow_unified_busy)
BEGIN
  SELECT RAISE(ABORT, 'tenant_id of unified_queue must not be empty')
  WHERE NEW.tenant_id = '' AND OLD.tenant_id <> '';
  SELECT RAISE(ABORT, 'collection of unified_queue must not be empty');
END;

-- A row that is done or failed gives its key to a new one. Its job keeps it: it cannot be retried
-- while the new one is there.
CREATE TRIGGER unified_queue_free_key BEFORE INSERT ON unified_queue
WHEN NOT EXISTS (SELECT 1 FROM windrow_unified_busy)
  AND EXISTS (
    SELECT 1 FROM unified_queue
    WHERE idempotency_key = NEW.idempotency_key AND status IN ('done', 'failed')
      AND queue_id <> NEW.queue_id
  )
BEGIN
  INSERT INTO windrow_unified_busy (is_busy) VALUES (3);
  UPDATE unified_queue
  SET idempotency_key = 'windrow:' || (
    SELECT w.id FROM windrow_unified_job AS w WHERE w.queue_id = unified_queue.queue_id
  )
  WHERE idempotency_key = NEW.idempotency_key;
  DELETE FROM windrow_unified_busy WHERE is_busy = 3;
END;

-- INSERT OR REPLACE takes rows away without a trigger: their jobs go with them, if nobody else has them.
CREATE VIEW windrow_unified_replaced AS SELECT queue_id, '' AS key FROM windrow_unified_job;

CREATE TRIGGER windrow_unified_replaced_insert INSTEAD OF INSERT ON windrow_unified_replaced
WHEN EXISTS (SELECT 1 FROM windrow_unified_job WHERE queue_id = NEW.queue_id)
  OR EXISTS (
    SELECT 1 FROM windrow_job_live AS j CROSS JOIN windrow_unified_job AS w ON w.seq = j.seq
    WHERE j.unique_key = NEW.key
      AND NOT EXISTS (SELECT 1 FROM unified_queue AS u WHERE u.queue_id = w.queue_id)
  )
BEGIN
  SELECT RAISE(ABORT, 'the row that would be replaced is not this table''s to delete')
  FROM windrow_job_live AS j
  CROSS JOIN windrow_unified_job AS w ON w.seq = j.seq
  LEFT JOIN windrow_lease AS l ON l.token = j.lease
  WHERE (
      w.queue_id = NEW.queue_id
      OR (
        j.unique_key = NEW.key
        AND NOT EXISTS (SELECT 1 FROM unified_queue AS u WHERE u.queue_id = w.queue_id)
      )
    )
    AND (
      j.state = 'waiting' OR j.group_id IS NOT NULL OR j.root_of IS NOT NULL
      OR (
        j.state = 'active' AND l.worker NOT LIKE 'unified\_queue:%' ESCAPE '\'
        AND l.expires_at > (SELECT now FROM windrow_unified_clock)
      )
    );
  INSERT INTO windrow_unified_gone (seq)
  SELECT w.seq FROM windrow_unified_job AS w WHERE w.queue_id = NEW.queue_id;
  INSERT INTO windrow_unified_gone (seq)
  SELECT w.seq FROM windrow_job_live AS j CROSS JOIN windrow_unified_job AS w ON w.seq = j.seq
  WHERE j.unique_key = NEW.key
    AND NOT EXISTS (SELECT 1 FROM unified_queue AS u WHERE u.queue_id = w.queue_id);
END;

CREATE TRIGGER unified_queue_insert AFTER INSERT ON unified_queue
WHEN NOT EXISTS (SELECT 1 FROM windrow_unified_busy)
BEGIN
  INSERT INTO windrow_unified_busy (is_busy) VALUES (1);
  INSERT INTO windrow_unified_replaced (queue_id, key) VALUES (NEW.queue_id, NEW.idempotency_key);
  INSERT INTO windrow_unified_job (queue_id, id)
  SELECT
    NEW.queue_id,
    substr(digits, 1, 8) || '-' || substr(digits, 9, 4) || '-' || substr(digits, 13, 4) || '-'
    || substr(digits, 17, 4) || '-' || substr(digits, 21)
  FROM (
    SELECT CASE
      WHEN length(given) = 32 AND given NOT GLOB '*[^0-9a-f]*' THEN given
      ELSE lower(hex(randomblob(16)))
    END AS digits
    FROM (SELECT lower(replace(NEW.queue_id, '-', '')) AS given)
  );
  INSERT INTO windrow_job_live (
    id, queue, kind, state, priority, run_at, created_at, attempts, max_attempts, max_crashes, tenant,
    unique_key, error
  )
  SELECT
    w.id, 'unified_queue', NEW.item_type || '.' || NEW.op,
    CASE WHEN due > now AND NEW.status = 'pending' THEN 'scheduled' ELSE 'ready' END,
    NEW.priority, CASE WHEN due > now AND NEW.status = 'pending' THEN due ELSE now END,
    ifnull(CAST(round((julianday(NEW.created_at) - 2440587.5) * 86400000) AS INTEGER) * 1000, now),
    NEW.retry_count, NEW.max_retries + 1, NEW.max_retries + 1, nullif(NEW.tenant_id, ''),
    NEW.idempotency_key, NEW.error_message
  FROM windrow_unified_job AS w
  CROSS JOIN windrow_unified_clock
  CROSS JOIN (
    SELECT CAST(round((julianday(NEW.lease_until) - 2440587.5) * 86400000) AS INTEGER) * 1000 AS due
  )
  WHERE w.queue_id = NEW.queue_id;
  UPDATE windrow_unified_job
  SET seq = (SELECT j.seq FROM windrow_job_live AS j WHERE j.id = windrow_unified_job.id)
  WHERE queue_id = NEW.queue_id;
  UPDATE windrow_job_live SET place = seq
  WHERE seq = (SELECT seq FROM windrow_unified_job WHERE queue_id = NEW.queue_id);
  INSERT INTO windrow_job_payload (seq, payload, headers)
  SELECT
    seq, NEW.payload_json,
    json_object('collection', NEW.collection, 'branch', NEW.branch, 'metadata', NEW.metadata)
  FROM windrow_unified_job WHERE queue_id = NEW.queue_id;
  INSERT INTO windrow_tally (queue, state, count)
  SELECT j.queue, j.state, 1
  FROM windrow_unified_job AS w CROSS JOIN windrow_job_live AS j ON j.seq = w.seq
  WHERE w.queue_id = NEW.queue_id
  ON CONFLICT (queue, state) DO UPDATE SET count = count + excluded.count;
  INSERT INTO windrow_event (at, type, state, queue, kind, tenant, job_ids)
  SELECT c.now, 'job.created', j.state, j.queue, j.kind, j.tenant, w.packed
  FROM windrow_unified_job AS w
  CROSS JOIN windrow_job_live AS j ON j.seq = w.seq
  CROSS JOIN windrow_unified_clock AS c
  WHERE w.queue_id = NEW.queue_id;
  INSERT INTO windrow_unified_start (seq, worker, until)
  SELECT w.seq, NEW.worker_id, ifnull(
    CAST(round((julianday(NEW.lease_until) - 2440587.5) * 86400000) AS INTEGER) * 1000,
    c.now + 300000000
  )
  FROM windrow_unified_job AS w, windrow_unified_clock AS c
  WHERE w.queue_id = NEW.queue_id AND NEW.status = 'in_progress';
  INSERT INTO windrow_unified_end (seq, state, error)
  SELECT seq, CASE NEW.status WHEN 'done' THEN 'completed' ELSE 'failed' END, NEW.error_message
  FROM windrow_unified_job WHERE queue_id = NEW.queue_id AND NEW.status IN ('done', 'failed');
  DELETE FROM windrow_unified_busy WHERE is_busy = 1;
END;

-- Updates that change nothing: of what a Windrow worker holds or is not to be taken from here, of a
-- lease that another worker holds, of one end into another, of what has ended into what waits while
-- another job has its key.
CREATE TRIGGER unified_queue_refuse BEFORE UPDATE ON unified_queue
WHEN NOT EXISTS (SELECT 1 FROM windrow_unified_busy)
BEGIN
  SELECT RAISE(ABORT, 'queue_id cannot be changed') WHERE NEW.queue_id <> OLD.queue_id;
  SELECT RAISE(IGNORE)
  WHERE (OLD.status IN ('done', 'failed') AND NEW.status NOT IN (OLD.status, 'pending'))
    OR (
      OLD.status IN ('done', 'failed') AND NEW.status = 'pending'
      AND EXISTS (
        SELECT 1
        FROM windrow_unified_job AS w
        CROSS JOIN windrow_job_finished AS j ON j.seq = w.seq
        CROSS JOIN windrow_job_live AS holder INDEXED BY windrow_job_live_unique
          ON holder.unique_key = j.unique_key
        WHERE w.queue_id = OLD.queue_id
          AND (holder.queue = 'unified_queue' OR ifnull(holder.tenant, x'') = ifnull(j.tenant, x''))
      )
    )
    OR (
      OLD.status = 'pending' AND NEW.status = 'in_progress'
      AND EXISTS (SELECT 1 FROM windrow_queue WHERE name = 'unified_queue' AND is_paused = 1)
    )
    OR (
      OLD.status = 'in_progress'
      AND EXISTS (
        SELECT 1
        FROM windrow_unified_job AS w
        CROSS JOIN windrow_job_live AS j ON j.seq = w.seq
        LEFT JOIN windrow_lease AS l ON l.token = j.lease
        WHERE w.queue_id = OLD.queue_id
          AND CASE
            WHEN j.state = 'paused' THEN NEW.status <> 'pending'
            WHEN j.state <> 'active' THEN 1
            WHEN l.expires_at <= (SELECT now FROM windrow_unified_clock) THEN 0
            WHEN l.worker NOT LIKE 'unified\_queue:%' ESCAPE '\' THEN 1
            ELSE NEW.status = 'in_progress' AND NEW.worker_id IS NOT OLD.worker_id
          END
      )
    );
END;

-- Claimed; or taken over, when the lease of another is over.
CREATE TRIGGER unified_queue_start AFTER UPDATE OF status, worker_id ON unified_queue
WHEN NEW.status = 'in_progress'
  AND (OLD.status = 'pending' OR (OLD.status = 'in_progress' AND NEW.worker_id IS NOT OLD.worker_id))
  AND NOT EXISTS (SELECT 1 FROM windrow_unified_busy)
BEGIN
  INSERT INTO windrow_unified_busy (is_busy) VALUES (1);
  INSERT INTO windrow_unified_start (seq, worker, until)
  SELECT w.seq, NEW.worker_id, ifnull(
    CAST(round((julianday(NEW.lease_until) - 2440587.5) * 86400000) AS INTEGER) * 1000,
    c.now + 300000000
  )
  FROM windrow_unified_job AS w, windrow_unified_clock AS c WHERE w.queue_id = NEW.queue_id;
  DELETE FROM windrow_unified_busy WHERE is_busy = 1;
END;

CREATE TRIGGER unified_queue_renew AFTER UPDATE OF lease_until ON unified_queue
WHEN NEW.status = 'in_progress' AND OLD.status = 'in_progress'
  AND NEW.worker_id IS OLD.worker_id AND NEW.lease_until IS NOT OLD.lease_until
  AND NOT EXISTS (SELECT 1 FROM windrow_unified_busy)
BEGIN
  INSERT INTO windrow_unified_busy (is_busy) VALUES (1);
  UPDATE windrow_lease
  SET expires_at = CAST(round((julianday(NEW.lease_until) - 2440587.5) * 86400000) AS INTEGER) * 1000
  WHERE julianday(NEW.lease_until) IS NOT NULL
    AND token = (
      SELECT j.lease FROM windrow_unified_job AS w CROSS JOIN windrow_job_live AS j ON j.seq = w.seq
      WHERE w.queue_id = NEW.queue_id AND j.state = 'active'
    );
  DELETE FROM windrow_unified_busy WHERE is_busy = 1;
END;

-- Back to wait, until lease_until if the statement says one that is to come. A job with a follower gives way to it.
CREATE TRIGGER unified_queue_return AFTER UPDATE OF status ON unified_queue
WHEN OLD.status = 'in_progress' AND NEW.status = 'pending'
  AND NOT EXISTS (SELECT 1 FROM windrow_unified_busy)
BEGIN
  INSERT INTO windrow_unified_busy (is_busy) VALUES (1);
  INSERT INTO windrow_unified_release (seq)
  SELECT seq FROM windrow_unified_job WHERE queue_id = NEW.queue_id;
  INSERT INTO windrow_tally (queue, state, count)
  SELECT j.queue, j.state, -1
  FROM windrow_unified_job AS w CROSS JOIN windrow_job_live AS j ON j.seq = w.seq
  WHERE w.queue_id = NEW.queue_id
  ON CONFLICT (queue, state) DO UPDATE SET count = count + excluded.count;
  UPDATE windrow_job_live
  SET stop_as = NULL, lease = NULL,
    state = CASE
      WHEN NEW.lease_until IS NOT OLD.lease_until AND julianday(NEW.lease_until) > julianday('now')
        THEN 'scheduled'
      ELSE 'ready'
    END,
    run_at = CASE
      WHEN NEW.lease_until IS NOT OLD.lease_until AND julianday(NEW.lease_until) > julianday('now')
        THEN CAST(round((julianday(NEW.lease_until) - 2440587.5) * 86400000) AS INTEGER) * 1000
      ELSE (SELECT now FROM windrow_unified_clock)
    END
  WHERE seq = (SELECT seq FROM windrow_unified_job WHERE queue_id = NEW.queue_id);
  INSERT INTO windrow_tally (queue, state, count)
  SELECT j.queue, j.state, 1
  FROM windrow_unified_job AS w CROSS JOIN windrow_job_live AS j ON j.seq = w.seq
  WHERE w.queue_id = NEW.queue_id
  ON CONFLICT (queue, state) DO UPDATE SET count = count + excluded.count;
  INSERT INTO windrow_unified_end (seq, state, error)
  SELECT j.seq, 'cancelled', 'replaced by job ' || f.id
  FROM windrow_unified_job AS w
  CROSS JOIN windrow_job_live AS j ON j.seq = w.seq
  CROSS JOIN windrow_job_live AS f INDEXED BY windrow_job_live_unique
    ON f.unique_key = j.unique_key AND ifnull(f.tenant, x'') = ifnull(j.tenant, x'')
  WHERE w.queue_id = NEW.queue_id AND f.is_follower = 1;
  -- What the lease left behind, as far as the statement did.
  UPDATE unified_queue
  SET worker_id = NULL,
    lease_until = CASE WHEN NEW.lease_until IS NOT OLD.lease_until THEN NEW.lease_until END
  WHERE queue_id = NEW.queue_id AND status = 'pending';
  INSERT INTO windrow_unified_mirror (seq)
  SELECT w.seq
  FROM windrow_unified_job AS w CROSS JOIN windrow_job_finished AS j ON j.seq = w.seq
  WHERE w.queue_id = NEW.queue_id;
  DELETE FROM windrow_unified_busy WHERE is_busy = 1;
END;

CREATE TRIGGER unified_queue_end AFTER UPDATE OF status ON unified_queue
WHEN OLD.status IN ('pending', 'in_progress') AND NEW.status IN ('done', 'failed')
  AND NOT EXISTS (SELECT 1 FROM windrow_unified_busy)
BEGIN
  INSERT INTO windrow_unified_busy (is_busy) VALUES (1);
  INSERT INTO windrow_unified_end (seq, state, error)
  SELECT seq, CASE NEW.status WHEN 'done' THEN 'completed' ELSE 'failed' END, NEW.error_message
  FROM windrow_unified_job WHERE queue_id = NEW.queue_id;
  DELETE FROM windrow_unified_busy WHERE is_busy = 1;
END;

-- What has ended is to run again.
CREATE TRIGGER unified_queue_retry AFTER UPDATE OF status ON unified_queue
WHEN OLD.status IN ('done', 'failed') AND NEW.status = 'pending'
  AND NOT EXISTS (SELECT 1 FROM windrow_unified_busy)
BEGIN
  INSERT INTO windrow_unified_busy (is_busy) VALUES (1);
  INSERT INTO windrow_job_live (
    seq, id, queue, kind, state, priority, run_at, created_at, started_at, attempts, crashes, runs,
    max_attempts, max_crashes, lease_seconds, retention_seconds, tenant, unique_key, place, error
  )
  SELECT
    j.seq, j.id, j.queue, j.kind,
    CASE WHEN due > now THEN 'scheduled' ELSE 'ready' END, j.priority,
    CASE WHEN due > now THEN due ELSE now END, j.created_at, j.started_at, NEW.retry_count, 0, j.runs,
    j.max_attempts, j.max_crashes, j.lease_seconds, j.retention_seconds, j.tenant, j.unique_key,
    j.place, NEW.error_message
  FROM windrow_unified_job AS w
  CROSS JOIN windrow_job_finished AS j ON j.seq = w.seq
  CROSS JOIN windrow_unified_clock
  CROSS JOIN (
    SELECT CASE
      WHEN NEW.lease_until IS NOT OLD.lease_until
        THEN CAST(round((julianday(NEW.lease_until) - 2440587.5) * 86400000) AS INTEGER) * 1000
    END AS due
  )
  WHERE w.queue_id = NEW.queue_id;
  INSERT INTO windrow_tally (queue, state, count)
  SELECT j.queue, j.state, -1
  FROM windrow_unified_job AS w CROSS JOIN windrow_job_finished AS j ON j.seq = w.seq
  WHERE w.queue_id = NEW.queue_id
  ON CONFLICT (queue, state) DO UPDATE SET count = count + excluded.count;
  INSERT INTO windrow_tally (queue, state, count)
  SELECT j.queue, j.state, 1
  FROM windrow_unified_job AS w CROSS JOIN windrow_job_live AS j ON j.seq = w.seq
  WHERE w.queue_id = NEW.queue_id
  ON CONFLICT (queue, state) DO UPDATE SET count = count + excluded.count;
  DELETE FROM windrow_job_finished
  WHERE seq = (SELECT seq FROM windrow_unified_job WHERE queue_id = NEW.queue_id);
  DELETE FROM windrow_job_result
  WHERE seq = (SELECT seq FROM windrow_unified_job WHERE queue_id = NEW.queue_id);
  -- Its key is its own again: one that has ended meanwhile gives it back.
  UPDATE unified_queue
  SET idempotency_key = 'windrow:' || (
    SELECT w.id FROM windrow_unified_job AS w WHERE w.queue_id = unified_queue.queue_id
  )
  WHERE idempotency_key = (
      SELECT j.unique_key
      FROM windrow_unified_job AS w CROSS JOIN windrow_job_live AS j ON j.seq = w.seq
      WHERE w.queue_id = NEW.queue_id
    )
    AND queue_id <> NEW.queue_id;
  UPDATE unified_queue
  SET worker_id = NULL,
    lease_until = CASE WHEN NEW.lease_until IS NOT OLD.lease_until THEN NEW.lease_until END,
    idempotency_key = ifnull(
      (
        SELECT j.unique_key
        FROM windrow_unified_job AS w CROSS JOIN windrow_job_live AS j ON j.seq = w.seq
        WHERE w.queue_id = NEW.queue_id
      ), idempotency_key
    )
  WHERE queue_id = NEW.queue_id AND status = 'pending';
  DELETE FROM windrow_unified_busy WHERE is_busy = 1;
END;

-- lease_until of a row that waits is when it is due.
CREATE TRIGGER unified_queue_due AFTER UPDATE OF lease_until ON unified_queue
WHEN OLD.status = 'pending' AND NEW.status = 'pending' AND NEW.lease_until IS NOT OLD.lease_until
  AND NOT EXISTS (SELECT 1 FROM windrow_unified_busy)
BEGIN
  INSERT INTO windrow_unified_busy (is_busy) VALUES (1);
  INSERT INTO windrow_tally (queue, state, count)
  SELECT j.queue, j.state, -1
  FROM windrow_unified_job AS w CROSS JOIN windrow_job_live AS j ON j.seq = w.seq
  WHERE w.queue_id = NEW.queue_id
  ON CONFLICT (queue, state) DO UPDATE SET count = count + excluded.count;
  UPDATE windrow_job_live
  SET state = CASE
      WHEN julianday(NEW.lease_until) > julianday('now') THEN 'scheduled' ELSE 'ready'
    END,
    run_at = CASE
      WHEN julianday(NEW.lease_until) > julianday('now')
        THEN CAST(round((julianday(NEW.lease_until) - 2440587.5) * 86400000) AS INTEGER) * 1000
      ELSE (SELECT now FROM windrow_unified_clock)
    END
  WHERE seq = (SELECT seq FROM windrow_unified_job WHERE queue_id = NEW.queue_id);
  INSERT INTO windrow_tally (queue, state, count)
  SELECT j.queue, j.state, 1
  FROM windrow_unified_job AS w CROSS JOIN windrow_job_live AS j ON j.seq = w.seq
  WHERE w.queue_id = NEW.queue_id
  ON CONFLICT (queue, state) DO UPDATE SET count = count + excluded.count;
  DELETE FROM windrow_unified_busy WHERE is_busy = 1;
END;

-- Everything that is not the state.
CREATE TRIGGER unified_queue_edit AFTER UPDATE ON unified_queue
WHEN NOT EXISTS (SELECT 1 FROM windrow_unified_busy)
BEGIN
  INSERT INTO windrow_unified_busy (is_busy) VALUES (1);
  UPDATE windrow_job_live
  SET kind = NEW.item_type || '.' || NEW.op, priority = NEW.priority, error = NEW.error_message,
    tenant = nullif(NEW.tenant_id, ''),
    unique_key = CASE
      WHEN NEW.idempotency_key IS OLD.idempotency_key THEN unique_key ELSE NEW.idempotency_key
    END,
    max_attempts = CASE
      WHEN NEW.max_retries = OLD.max_retries THEN max_attempts ELSE NEW.max_retries + 1
    END,
    max_crashes = CASE
      WHEN NEW.max_retries = OLD.max_retries THEN max_crashes ELSE NEW.max_retries + 1
    END,
    attempts = CASE
      WHEN NEW.retry_count = OLD.retry_count THEN attempts ELSE max(NEW.retry_count - crashes, 0)
    END,
    crashes = CASE
      WHEN NEW.retry_count = OLD.retry_count THEN crashes ELSE min(crashes, NEW.retry_count)
    END,
    created_at = CASE
      WHEN NEW.created_at = OLD.created_at THEN created_at
      ELSE ifnull(
        CAST(round((julianday(NEW.created_at) - 2440587.5) * 86400000) AS INTEGER) * 1000, created_at
      )
    END
  WHERE seq = (SELECT seq FROM windrow_unified_job WHERE queue_id = NEW.queue_id);
  UPDATE windrow_job_finished
  SET kind = NEW.item_type || '.' || NEW.op, priority = NEW.priority, error = NEW.error_message,
    tenant = nullif(NEW.tenant_id, ''),
    unique_key = CASE
      WHEN NEW.idempotency_key IS OLD.idempotency_key THEN unique_key ELSE NEW.idempotency_key
    END,
    max_attempts = CASE
      WHEN NEW.max_retries = OLD.max_retries THEN max_attempts ELSE NEW.max_retries + 1
    END,
    max_crashes = CASE
      WHEN NEW.max_retries = OLD.max_retries THEN max_crashes ELSE NEW.max_retries + 1
    END,
    attempts = CASE
      WHEN NEW.retry_count = OLD.retry_count THEN attempts ELSE max(NEW.retry_count - crashes, 0)
    END,
    crashes = CASE
      WHEN NEW.retry_count = OLD.retry_count THEN crashes ELSE min(crashes, NEW.retry_count)
    END,
    created_at = CASE
      WHEN NEW.created_at = OLD.created_at THEN created_at
      ELSE ifnull(
        CAST(round((julianday(NEW.created_at) - 2440587.5) * 86400000) AS INTEGER) * 1000, created_at
      )
    END
  WHERE seq = (SELECT seq FROM windrow_unified_job WHERE queue_id = NEW.queue_id);
  UPDATE windrow_job_payload
  SET payload = NEW.payload_json,
    headers = json_set(
      ifnull(headers, '{}'), '$.collection', NEW.collection, '$.branch', NEW.branch, '$.metadata',
      NEW.metadata
    )
  WHERE seq = (SELECT seq FROM windrow_unified_job WHERE queue_id = NEW.queue_id)
    AND (NEW.payload_json, NEW.collection, NEW.branch, NEW.metadata)
      IS NOT (OLD.payload_json, OLD.collection, OLD.branch, OLD.metadata);
  INSERT INTO windrow_job_error (seq, at, reason, message)
  SELECT
    w.seq, ifnull(
      CAST(round((julianday(NEW.last_error_at) - 2440587.5) * 86400000) AS INTEGER) * 1000, c.now
    ), 'attempt', NEW.error_message
  FROM windrow_unified_job AS w, windrow_unified_clock AS c
  WHERE w.queue_id = NEW.queue_id AND NEW.error_message IS NOT NULL
    AND NEW.error_message IS NOT OLD.error_message;
  UPDATE unified_queue SET updated_at = (SELECT text FROM windrow_unified_clock)
  WHERE queue_id = NEW.queue_id AND NEW.updated_at = OLD.updated_at;
  DELETE FROM windrow_unified_busy WHERE is_busy = 1;
END;

CREATE TRIGGER unified_queue_refuse_delete BEFORE DELETE ON unified_queue
WHEN NOT EXISTS (SELECT 1 FROM windrow_unified_busy)
BEGIN
  SELECT RAISE(IGNORE)
  WHERE EXISTS (
    SELECT 1
    FROM windrow_unified_job AS w
    CROSS JOIN windrow_job_live AS j ON j.seq = w.seq
    LEFT JOIN windrow_lease AS l ON l.token = j.lease
    WHERE w.queue_id = OLD.queue_id
      AND (
        j.state = 'waiting' OR j.group_id IS NOT NULL OR j.root_of IS NOT NULL
        OR (
          j.state = 'active' AND l.worker NOT LIKE 'unified\_queue:%' ESCAPE '\'
          AND l.expires_at > (SELECT now FROM windrow_unified_clock)
        )
      )
  );
END;

CREATE TRIGGER unified_queue_delete AFTER DELETE ON unified_queue
WHEN NOT EXISTS (SELECT 1 FROM windrow_unified_busy)
BEGIN
  INSERT INTO windrow_unified_busy (is_busy) VALUES (1);
  INSERT INTO windrow_unified_gone (seq)
  SELECT seq FROM windrow_unified_job WHERE queue_id = OLD.queue_id;
  DELETE FROM windrow_unified_busy WHERE is_busy = 1;
END;

-- Jobs that were there before.
INSERT INTO windrow_unified_mirror (seq) SELECT seq FROM windrow_unified_row;
