-- The tables of Windrow on SQLite, by topic: migrations, jobs, leases and workers, groups, queues,
-- limits, schedules, events, transfer between databases, dialects, catalog, accounts. Wake-ups and
-- tenancy, which have tables on Postgres, have none here: a process wakes itself and the others watch
-- the file, and SQLite has no roles.
--
-- Times are microseconds since 1970 in UTC, ids are UUIDs as text, flags are 0 and 1. `tenant` is null
-- for jobs, groups and pages without a tenant, and '' in the other tables of the catalog and in those
-- of the accounts.


-- # Migrations

-- The migrations that were applied to this database.
CREATE TABLE windrow_migration (
  version INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  applied_at INTEGER NOT NULL
);


-- # Jobs

-- A job's row is in windrow_job_live until the job ends, and then moves to windrow_job_finished, so
-- that the hot table stays as small as the work at hand. Large or seldom read values are in tables
-- beside it, under the job's seq, and never move: payload, result, errors, progress.

-- Jobs that have not ended. Claims read only this table.
CREATE TABLE windrow_job_live (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL,
  queue TEXT NOT NULL,
  kind TEXT NOT NULL,
  state TEXT NOT NULL,
  priority INTEGER NOT NULL,
  run_at INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  started_at INTEGER,
  finished_at INTEGER,
  expires_at INTEGER,
  attempts INTEGER NOT NULL DEFAULT 0,
  crashes INTEGER NOT NULL DEFAULT 0,
  runs INTEGER NOT NULL DEFAULT 0,
  max_attempts INTEGER NOT NULL,
  max_crashes INTEGER NOT NULL,
  lease TEXT,
  lease_seconds INTEGER,
  retention_seconds INTEGER,
  tenant TEXT,
  group_id TEXT,
  root_of TEXT,
  unique_key TEXT,
  is_follower INTEGER NOT NULL DEFAULT 0,
  stop_as TEXT,
  error TEXT,
  limit_keys TEXT,
  fair_key TEXT,  -- the first of the limit keys
  max_hold_seconds INTEGER,
  place INTEGER,  -- the order within a queue and priority: the seq, or given by promotion
  is_placed INTEGER NOT NULL DEFAULT 0  -- held: was promoted before and gave its place back
);

CREATE UNIQUE INDEX windrow_job_live_id ON windrow_job_live (id);

CREATE INDEX windrow_job_live_scheduled ON windrow_job_live (run_at) WHERE state = 'scheduled';

-- Jobs without a tenant are unique among each other: the empty blob equals no text.
CREATE UNIQUE INDEX windrow_job_live_unique ON windrow_job_live (unique_key, ifnull(tenant, x''), is_follower)
WHERE unique_key IS NOT NULL;

-- With the state, so that members are counted from the index alone.
CREATE INDEX windrow_job_live_group ON windrow_job_live (group_id, id, state) WHERE group_id IS NOT NULL;

CREATE INDEX windrow_job_live_tenant ON windrow_job_live (tenant, id) WHERE tenant IS NOT NULL;

-- The order of claims. Only claimable rows are in it, so a claim skips nothing.
CREATE INDEX windrow_job_live_ready ON windrow_job_live (queue, priority DESC, place)
WHERE state = 'ready';

CREATE INDEX windrow_job_live_hold ON windrow_job_live (max_hold_seconds, run_at)
WHERE state = 'held' AND is_follower = 0 AND max_hold_seconds IS NOT NULL;

-- Promotion: the held jobs of a fairness key in order. By lane (queue, kind, tenant) as well, so that
-- it can skip all jobs of a lane that no worker serves.
CREATE INDEX windrow_job_live_held
ON windrow_job_live (fair_key, priority DESC, is_placed DESC, place)
WHERE state = 'held' AND is_follower = 0;

CREATE INDEX windrow_job_live_held_lane
ON windrow_job_live (fair_key, queue, kind, ifnull(tenant, ''), priority DESC, is_placed DESC, place)
WHERE state = 'held' AND is_follower = 0;

-- Jobs that have ended. The columns of windrow_job_live, in the same order.
CREATE TABLE windrow_job_finished (
  seq INTEGER PRIMARY KEY,
  id TEXT NOT NULL,
  queue TEXT NOT NULL,
  kind TEXT NOT NULL,
  state TEXT NOT NULL,
  priority INTEGER NOT NULL,
  run_at INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  started_at INTEGER,
  finished_at INTEGER NOT NULL,
  expires_at INTEGER,
  attempts INTEGER NOT NULL,
  crashes INTEGER NOT NULL,
  runs INTEGER NOT NULL,
  max_attempts INTEGER NOT NULL,
  max_crashes INTEGER NOT NULL,
  lease TEXT,
  lease_seconds INTEGER,
  retention_seconds INTEGER,
  tenant TEXT,
  group_id TEXT,
  root_of TEXT,
  unique_key TEXT,
  is_follower INTEGER NOT NULL DEFAULT 0,
  stop_as TEXT,
  error TEXT,
  limit_keys TEXT,
  fair_key TEXT,
  max_hold_seconds INTEGER,
  place INTEGER,
  is_placed INTEGER NOT NULL DEFAULT 0
);

CREATE UNIQUE INDEX windrow_job_finished_id ON windrow_job_finished (id);

-- A completed job, the usual case, has no entry here.
CREATE INDEX windrow_job_finished_state ON windrow_job_finished (state, id) WHERE state IN ('failed', 'cancelled');

CREATE INDEX windrow_job_finished_group ON windrow_job_finished (group_id, id) WHERE group_id IS NOT NULL;

CREATE INDEX windrow_job_finished_tenant ON windrow_job_finished (tenant, id) WHERE tenant IS NOT NULL;

CREATE INDEX windrow_job_finished_unique ON windrow_job_finished (unique_key, id) WHERE unique_key IS NOT NULL;

CREATE INDEX windrow_job_finished_expiry ON windrow_job_finished (expires_at) WHERE expires_at IS NOT NULL;

-- The members of a group in the order in which they ended, as crawls are read.
CREATE INDEX windrow_job_finished_ended ON windrow_job_finished (group_id, finished_at, id)
WHERE group_id IS NOT NULL;

CREATE VIEW windrow_job AS
SELECT * FROM windrow_job_live
UNION ALL
SELECT * FROM windrow_job_finished;

-- Payload, headers and tags of jobs.
CREATE TABLE windrow_job_payload (
  seq INTEGER PRIMARY KEY,
  payload TEXT NOT NULL,
  headers TEXT,
  tags TEXT,
  is_cleaned INTEGER NOT NULL DEFAULT 0
);

-- Results of jobs: the result itself, or the hash of the blob that has it.
CREATE TABLE windrow_job_result (
  seq INTEGER PRIMARY KEY,
  result TEXT,
  blob_hash TEXT,
  is_cleaned INTEGER NOT NULL DEFAULT 0
);

CREATE INDEX windrow_job_result_blob ON windrow_job_result (blob_hash) WHERE blob_hash IS NOT NULL;

-- Results too large for a row, by their SHA-256.
CREATE TABLE windrow_blob (
  hash TEXT PRIMARY KEY,
  body BLOB NOT NULL
);

-- Errors of the runs of a job, oldest first.
CREATE TABLE windrow_job_error (
  number INTEGER PRIMARY KEY,
  seq INTEGER NOT NULL,
  at INTEGER NOT NULL,
  reason TEXT NOT NULL,
  type TEXT,
  message TEXT NOT NULL,
  traceback TEXT
);

CREATE INDEX windrow_job_error_seq ON windrow_job_error (seq);

-- Results of the completed steps of a job, which a later run does not repeat.
CREATE TABLE windrow_job_step (
  seq INTEGER NOT NULL,
  name TEXT NOT NULL,
  at INTEGER NOT NULL,
  result TEXT NOT NULL,
  PRIMARY KEY (seq, name)
);

-- The progress of a job, as its run reported it last.
CREATE TABLE windrow_job_progress (
  seq INTEGER PRIMARY KEY,
  percent INTEGER NOT NULL,
  message TEXT,
  counters TEXT NOT NULL,
  updated_at INTEGER NOT NULL
);


-- # Leases and workers

-- Leases: one row per claim and lease length, deleted when the last of its jobs (pending) ends.
CREATE TABLE windrow_lease (
  token TEXT PRIMARY KEY,
  worker TEXT NOT NULL,
  seconds INTEGER NOT NULL,
  claimed_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  pending INTEGER NOT NULL,
  job_seqs TEXT NOT NULL
) WITHOUT ROWID;

CREATE INDEX windrow_lease_expiry ON windrow_lease (expires_at);

-- The workers that are alive, and the queues and kinds they serve (JSON arrays). `trouble` is what
-- keeps failing in a worker, as it reports it.
CREATE TABLE windrow_worker (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  host TEXT NOT NULL,
  pid INTEGER NOT NULL,
  queues TEXT,
  kinds TEXT,
  concurrency INTEGER NOT NULL,
  running INTEGER NOT NULL,
  version TEXT NOT NULL,
  started_at INTEGER NOT NULL,
  seen_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  trouble TEXT
) WITHOUT ROWID;

-- Who holds a role that one process at a time may have, and until when.
CREATE TABLE windrow_leader (
  role TEXT PRIMARY KEY,
  holder TEXT NOT NULL,
  expires_at INTEGER NOT NULL
) WITHOUT ROWID;


-- # Groups

-- Groups: how many members ended in which state, and the job that runs after the last one.
CREATE TABLE windrow_job_group (
  id TEXT PRIMARY KEY,
  state TEXT NOT NULL,
  is_paused INTEGER NOT NULL DEFAULT 0,
  is_open INTEGER NOT NULL,
  is_cancelled INTEGER NOT NULL DEFAULT 0,
  reason TEXT,
  added INTEGER NOT NULL DEFAULT 0,
  pending INTEGER NOT NULL DEFAULT 0,
  completed INTEGER NOT NULL DEFAULT 0,
  failed INTEGER NOT NULL DEFAULT 0,
  cancelled INTEGER NOT NULL DEFAULT 0,
  root TEXT,
  tenant TEXT,
  finish_job TEXT,
  retention_seconds INTEGER,
  created_at INTEGER NOT NULL,
  ended_at INTEGER,
  expires_at INTEGER,  -- set while the group has ended and none of its members runs again
  max_jobs INTEGER  -- the number of members it accepts in all
);

CREATE INDEX windrow_job_group_paused ON windrow_job_group (id) WHERE is_paused = 1;

CREATE INDEX windrow_job_group_expiry ON windrow_job_group (expires_at) WHERE expires_at IS NOT NULL;

CREATE INDEX windrow_job_group_active ON windrow_job_group (id) WHERE state = 'active';

-- Keys of a group's members. A group accepts each key once, however its job ended. Ids are stored as
-- 16 bytes, and a key as the 16 bytes of its hash. Deleted with the group.
CREATE TABLE windrow_group_key (
  group_id BLOB NOT NULL,
  key BLOB NOT NULL,
  job_id BLOB NOT NULL,
  PRIMARY KEY (group_id, key)
) WITHOUT ROWID;

-- Notes that jobs leave about their group, such as the pages that a crawl skipped: each once, written
-- in the transaction that completes the job, and deleted with the group.
CREATE TABLE windrow_group_note (
  group_id TEXT NOT NULL,
  subject TEXT NOT NULL,
  text TEXT NOT NULL,
  PRIMARY KEY (group_id, subject, text)
) WITHOUT ROWID;


-- # Queues

-- Settings of queues: paused, maximum depth, retention by final state.
CREATE TABLE windrow_queue (
  name TEXT PRIMARY KEY,
  is_paused INTEGER NOT NULL DEFAULT 0,
  max_depth INTEGER,
  on_full TEXT,
  completed_seconds INTEGER,
  failed_seconds INTEGER,
  cancelled_seconds INTEGER
) WITHOUT ROWID;

-- The number of jobs in a queue and state.
CREATE TABLE windrow_tally (
  queue TEXT NOT NULL,
  state TEXT NOT NULL,
  count INTEGER NOT NULL,
  PRIMARY KEY (queue, state)
) WITHOUT ROWID;


-- # Limits

-- A job with limit keys waits in the state `held` until promotion makes it ready. The number of jobs
-- that use a key is never stored: it is counted from windrow_job_live, at the jobs that
-- windrow_job_slot names.

-- What a key allows, its rate tokens and its turn among the fairness keys.
CREATE TABLE windrow_job_limit (
  key TEXT PRIMARY KEY,
  active INTEGER,
  per_second REAL,
  burst INTEGER,
  tokens REAL,
  refilled_at INTEGER,
  parked_until INTEGER,
  turn REAL NOT NULL DEFAULT 0
) WITHOUT ROWID;

CREATE INDEX windrow_job_limit_parked ON windrow_job_limit (key) WHERE parked_until IS NOT NULL;

-- The jobs that may count under a key, and since when. Written by the promotion of the job; without
-- meaning once the job is neither ready nor active.
CREATE TABLE windrow_job_slot (
  key TEXT NOT NULL,
  seq INTEGER NOT NULL,
  taken_at INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (key, seq)
) WITHOUT ROWID;

-- Lanes (queue, kind, tenant or '') whose ready jobs nobody claimed for some seconds while others
-- waited for their places. Until a worker asks for such jobs, or `until`, jobs of these lanes get only
-- the places that no other job can use.
CREATE TABLE windrow_unserved (
  queue TEXT NOT NULL,
  kind TEXT NOT NULL,
  tenant TEXT NOT NULL,
  until INTEGER NOT NULL,
  PRIMARY KEY (queue, kind, tenant)
) WITHOUT ROWID;


-- # Schedules

-- Schedules: at every slot (next_at, then the one after it) a job like `job` is inserted.
CREATE TABLE windrow_schedule (
  name TEXT PRIMARY KEY,
  cron TEXT,
  timezone TEXT NOT NULL,
  every_seconds REAL,
  jitter_seconds REAL NOT NULL,
  catch_up TEXT NOT NULL,
  is_paused INTEGER NOT NULL DEFAULT 0,
  next_at INTEGER,
  last_at INTEGER,
  created_at INTEGER NOT NULL,
  job TEXT NOT NULL
);

CREATE INDEX windrow_schedule_due ON windrow_schedule (next_at) WHERE is_paused = 0;


-- # Events

-- Events, as a stream that can be read from any position. One row describes all jobs that one call
-- changed alike, by the 16 bytes of each id; readers split it. AUTOINCREMENT, so that the number of a
-- removed event is not used again.
CREATE TABLE windrow_event (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  at INTEGER NOT NULL,
  type TEXT NOT NULL,
  state TEXT,
  queue TEXT,
  kind TEXT,
  tenant TEXT,
  group_id TEXT,
  job_ids BLOB,
  details TEXT
);


-- # Transfer between databases

-- Jobs, groups and schedules taken from this database that may not have arrived at the target.
CREATE TABLE windrow_copy_outbox (
  number INTEGER PRIMARY KEY,
  parcel TEXT NOT NULL,
  target TEXT NOT NULL,
  item TEXT NOT NULL,
  body TEXT NOT NULL
);

CREATE INDEX windrow_copy_outbox_parcel ON windrow_copy_outbox (parcel, number);

-- Parcels that arrived from another database, with their receipts, so that none is taken in twice.
CREATE TABLE windrow_copy_inbox (
  parcel TEXT PRIMARY KEY,
  received_at INTEGER NOT NULL,
  receipt TEXT NOT NULL
) WITHOUT ROWID;

-- Rows imported from tables of other queues, by origin and key there, so that none is imported twice,
-- whatever became of its job.
CREATE TABLE windrow_imported (
  origin TEXT NOT NULL,
  key TEXT NOT NULL,
  checksum TEXT NOT NULL,
  job_id TEXT,
  imported_at INTEGER NOT NULL,
  PRIMARY KEY (origin, key)
) WITHOUT ROWID;

-- Runs of jobs whose queue is in BullMQ and whose rows are here: the last run that wrote, and the
-- outcome (JSON) of the one that ended, which is written with its rows and final.
CREATE TABLE windrow_far_run (
  key TEXT NOT NULL PRIMARY KEY,
  run INTEGER NOT NULL,
  ended TEXT,
  kept_at INTEGER NOT NULL
) WITHOUT ROWID;


-- # Dialects

-- The foreign schemas installed over the queue: `windrow db dialect`.
CREATE TABLE windrow_dialect (
  name TEXT PRIMARY KEY,
  version TEXT NOT NULL,
  installed_at INTEGER NOT NULL
);


-- # Catalog

-- Collections: what is searched together, and so is embedded by one model. Searches read
-- `generation`; `next_generation` is being built, with its model.
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

-- Sources of documents: a site, a folder, a note. `options` is a JSON object, `tags` an array.
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

-- Documents. `content` is the text that is searchable now; `pending` becomes searchable once it is in
-- the index. Chunks in the index that no document names are not shown.
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

-- The text of documents. `space` is where in the index its chunks were written last. `dropped_at` is
-- set when a document stops using the text, which is removed if no other document names it.
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

-- The page cache: documents that a scrape may return again, and the last version of pages whose
-- changes are tracked. `key` is a hash of tenant, url and variant. `site` is the host with its labels
-- reversed and a dot after each (`org.example.`), so that a site and its subdomains are one range.
-- When the cache is too large the oldest pages are removed first. The body is compressed, and comes
-- after the columns that the search for old pages reads.
CREATE TABLE windrow_page (
  key BLOB PRIMARY KEY,
  tenant TEXT,
  url TEXT NOT NULL,
  variant TEXT NOT NULL,
  etag TEXT,
  last_modified TEXT,
  fetched_at INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  body BLOB NOT NULL,
  site TEXT
);

CREATE INDEX windrow_page_by_age ON windrow_page (fetched_at, key, bytes);

CREATE INDEX windrow_page_by_site ON windrow_page (site, tenant, url) WHERE site IS NOT NULL;

-- Recordings of calls. `status` is the stage of processing, `error` why it failed, `note` what is
-- missing of the recording. `analysed_from` names what `analysis`, a JSON object, was made from.
CREATE TABLE windrow_call (
  id TEXT NOT NULL PRIMARY KEY,
  tenant TEXT NOT NULL,
  collection TEXT NOT NULL,
  name TEXT NOT NULL,
  status TEXT NOT NULL,
  error TEXT,
  seconds REAL,
  note TEXT,
  analysis TEXT,
  analysed_from TEXT,
  created_at INTEGER NOT NULL
) WITHOUT ROWID;

CREATE INDEX windrow_call_tenant ON windrow_call (tenant, created_at);

-- Calls that have not ended are counted by stage, however many have.
CREATE INDEX windrow_call_under_way ON windrow_call (status, tenant)
WHERE status NOT IN ('done', 'failed');

-- Artifacts of a call in the artifact store, by name.
CREATE TABLE windrow_call_artifact (
  call TEXT NOT NULL,
  name TEXT NOT NULL,
  key TEXT NOT NULL,
  size INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (call, name)
) WITHOUT ROWID;


-- # Accounts

-- Credentials for sites, sealed with a key that is not in the database. `holds` is a JSON array.
CREATE TABLE windrow_credential (
  tenant TEXT NOT NULL,
  name TEXT NOT NULL,
  origin TEXT NOT NULL,
  holds TEXT NOT NULL,
  sealed BLOB NOT NULL,
  changed_at INTEGER NOT NULL,
  PRIMARY KEY (tenant, name)
) WITHOUT ROWID;

-- Keys of the HTTP API. Only the SHA-256 of a key is stored; `tenant` is '' for a key of all tenants.
CREATE TABLE windrow_api_key (
  name TEXT NOT NULL PRIMARY KEY,
  hash TEXT NOT NULL UNIQUE,
  tenant TEXT NOT NULL,
  role TEXT NOT NULL,
  created_at INTEGER NOT NULL
) WITHOUT ROWID;

-- Digests of the dashboard's sessions that were logged out, until their cookies expire.
CREATE TABLE windrow_revoked_session (
  id TEXT NOT NULL PRIMARY KEY,
  expires_at INTEGER NOT NULL
) WITHOUT ROWID;

-- The credits that a tenant may use of the HTTP API in a period.
CREATE TABLE windrow_quota (
  tenant TEXT NOT NULL PRIMARY KEY,
  credits INTEGER NOT NULL,
  per TEXT NOT NULL  -- day or month, in UTC
) WITHOUT ROWID;

-- The credits used in the period that began at `period`, without those of open runs.
CREATE TABLE windrow_usage (
  tenant TEXT NOT NULL,
  period INTEGER NOT NULL,
  credits INTEGER NOT NULL,
  PRIMARY KEY (tenant, period)
) WITHOUT ROWID;

-- Groups whose members cost credits. While a run is open, its group's row has the count; closing it
-- adds the count to the usage. A closed run stays for a while, so that it is not opened again.
CREATE TABLE windrow_usage_run (
  id TEXT NOT NULL PRIMARY KEY,
  tenant TEXT NOT NULL,
  period INTEGER NOT NULL,
  is_open INTEGER NOT NULL DEFAULT 1
) WITHOUT ROWID;

CREATE INDEX windrow_usage_run_tenant ON windrow_usage_run (tenant, period);
