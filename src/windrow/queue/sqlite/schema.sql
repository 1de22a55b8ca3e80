-- What the migrations add up to. Made by `make schema`, compared by a test.

CREATE TABLE windrow_api_key (
  name TEXT NOT NULL PRIMARY KEY,
  hash TEXT NOT NULL UNIQUE,
  tenant TEXT NOT NULL,
  role TEXT NOT NULL,
  created_at INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE windrow_blob (
  hash TEXT PRIMARY KEY,
  body BLOB NOT NULL
);

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

CREATE INDEX windrow_call_under_way ON windrow_call (status, tenant)
WHERE status NOT IN ('done', 'failed');

CREATE TABLE windrow_call_artifact (
  call TEXT NOT NULL,
  name TEXT NOT NULL,
  key TEXT NOT NULL,
  size INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (call, name)
) WITHOUT ROWID;

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

CREATE TABLE windrow_copy_inbox (
  parcel TEXT PRIMARY KEY,
  received_at INTEGER NOT NULL,
  receipt TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE windrow_copy_outbox (
  number INTEGER PRIMARY KEY,
  parcel TEXT NOT NULL,
  target TEXT NOT NULL,
  item TEXT NOT NULL,
  body TEXT NOT NULL
);

CREATE INDEX windrow_copy_outbox_parcel ON windrow_copy_outbox (parcel, number);

CREATE TABLE windrow_credential (
  tenant TEXT NOT NULL,
  name TEXT NOT NULL,
  origin TEXT NOT NULL,
  holds TEXT NOT NULL,
  sealed BLOB NOT NULL,
  changed_at INTEGER NOT NULL,
  PRIMARY KEY (tenant, name)
) WITHOUT ROWID;

CREATE TABLE windrow_dialect (
  name TEXT PRIMARY KEY,
  version TEXT NOT NULL,
  installed_at INTEGER NOT NULL
);

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

CREATE INDEX windrow_document_by_content ON windrow_document (content) WHERE content IS NOT NULL;

CREATE INDEX windrow_document_by_pending ON windrow_document (pending) WHERE pending IS NOT NULL;

CREATE UNIQUE INDEX windrow_document_by_place
ON windrow_document (tenant, collection, source, uri, branch);

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

CREATE TABLE windrow_far_run (
  key TEXT NOT NULL PRIMARY KEY,
  run INTEGER NOT NULL,
  ended TEXT,
  kept_at INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE windrow_group_key (
  group_id BLOB NOT NULL,
  key BLOB NOT NULL,
  job_id BLOB NOT NULL,
  PRIMARY KEY (group_id, key)
) WITHOUT ROWID;

CREATE TABLE windrow_group_note (
  group_id TEXT NOT NULL,
  subject TEXT NOT NULL,
  text TEXT NOT NULL,
  PRIMARY KEY (group_id, subject, text)
) WITHOUT ROWID;

CREATE TABLE windrow_imported (
  origin TEXT NOT NULL,
  key TEXT NOT NULL,
  checksum TEXT NOT NULL,
  job_id TEXT,
  imported_at INTEGER NOT NULL,
  PRIMARY KEY (origin, key)
) WITHOUT ROWID;

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

CREATE INDEX windrow_job_finished_ended ON windrow_job_finished (group_id, finished_at, id)
WHERE group_id IS NOT NULL;

CREATE INDEX windrow_job_finished_expiry ON windrow_job_finished (expires_at) WHERE expires_at IS NOT NULL;

CREATE INDEX windrow_job_finished_group ON windrow_job_finished (group_id, id) WHERE group_id IS NOT NULL;

CREATE UNIQUE INDEX windrow_job_finished_id ON windrow_job_finished (id);

CREATE INDEX windrow_job_finished_state ON windrow_job_finished (state, id) WHERE state IN ('failed', 'cancelled');

CREATE INDEX windrow_job_finished_tenant ON windrow_job_finished (tenant, id) WHERE tenant IS NOT NULL;

CREATE INDEX windrow_job_finished_unique ON windrow_job_finished (unique_key, id) WHERE unique_key IS NOT NULL;

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

CREATE INDEX windrow_job_group_active ON windrow_job_group (id) WHERE state = 'active';

CREATE INDEX windrow_job_group_expiry ON windrow_job_group (expires_at) WHERE expires_at IS NOT NULL;

CREATE INDEX windrow_job_group_paused ON windrow_job_group (id) WHERE is_paused = 1;

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

CREATE INDEX windrow_job_live_group ON windrow_job_live (group_id, id, state) WHERE group_id IS NOT NULL;

CREATE INDEX windrow_job_live_held
ON windrow_job_live (fair_key, priority DESC, is_placed DESC, place)
WHERE state = 'held' AND is_follower = 0;

CREATE INDEX windrow_job_live_held_lane
ON windrow_job_live (fair_key, queue, kind, ifnull(tenant, ''), priority DESC, is_placed DESC, place)
WHERE state = 'held' AND is_follower = 0;

CREATE INDEX windrow_job_live_hold ON windrow_job_live (max_hold_seconds, run_at)
WHERE state = 'held' AND is_follower = 0 AND max_hold_seconds IS NOT NULL;

CREATE UNIQUE INDEX windrow_job_live_id ON windrow_job_live (id);

CREATE INDEX windrow_job_live_ready ON windrow_job_live (queue, priority DESC, place)
WHERE state = 'ready';

CREATE INDEX windrow_job_live_scheduled ON windrow_job_live (run_at) WHERE state = 'scheduled';

CREATE INDEX windrow_job_live_tenant ON windrow_job_live (tenant, id) WHERE tenant IS NOT NULL;

CREATE UNIQUE INDEX windrow_job_live_unique ON windrow_job_live (unique_key, ifnull(tenant, x''), is_follower)
WHERE unique_key IS NOT NULL;

CREATE TABLE windrow_job_payload (
  seq INTEGER PRIMARY KEY,
  payload TEXT NOT NULL,
  headers TEXT,
  tags TEXT,
  is_cleaned INTEGER NOT NULL DEFAULT 0
);

CREATE TABLE windrow_job_progress (
  seq INTEGER PRIMARY KEY,
  percent INTEGER NOT NULL,
  message TEXT,
  counters TEXT NOT NULL,
  updated_at INTEGER NOT NULL
);

CREATE TABLE windrow_job_result (
  seq INTEGER PRIMARY KEY,
  result TEXT,
  blob_hash TEXT,
  is_cleaned INTEGER NOT NULL DEFAULT 0
);

CREATE INDEX windrow_job_result_blob ON windrow_job_result (blob_hash) WHERE blob_hash IS NOT NULL;

CREATE TABLE windrow_job_slot (
  key TEXT NOT NULL,
  seq INTEGER NOT NULL,
  taken_at INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (key, seq)
) WITHOUT ROWID;

CREATE TABLE windrow_job_step (
  seq INTEGER NOT NULL,
  name TEXT NOT NULL,
  at INTEGER NOT NULL,
  result TEXT NOT NULL,
  PRIMARY KEY (seq, name)
);

CREATE TABLE windrow_leader (
  role TEXT PRIMARY KEY,
  holder TEXT NOT NULL,
  expires_at INTEGER NOT NULL
) WITHOUT ROWID;

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

CREATE TABLE windrow_migration (
  version INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  applied_at INTEGER NOT NULL
);

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

CREATE TABLE windrow_queue (
  name TEXT PRIMARY KEY,
  is_paused INTEGER NOT NULL DEFAULT 0,
  max_depth INTEGER,
  on_full TEXT,
  completed_seconds INTEGER,
  failed_seconds INTEGER,
  cancelled_seconds INTEGER
) WITHOUT ROWID;

CREATE TABLE windrow_quota (
  tenant TEXT NOT NULL PRIMARY KEY,
  credits INTEGER NOT NULL,
  per TEXT NOT NULL  -- day or month, in UTC
) WITHOUT ROWID;

CREATE TABLE windrow_revoked_session (
  id TEXT NOT NULL PRIMARY KEY,
  expires_at INTEGER NOT NULL
) WITHOUT ROWID;

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

CREATE TABLE windrow_tally (
  queue TEXT NOT NULL,
  state TEXT NOT NULL,
  count INTEGER NOT NULL,
  PRIMARY KEY (queue, state)
) WITHOUT ROWID;

CREATE TABLE windrow_unserved (
  queue TEXT NOT NULL,
  kind TEXT NOT NULL,
  tenant TEXT NOT NULL,
  until INTEGER NOT NULL,
  PRIMARY KEY (queue, kind, tenant)
) WITHOUT ROWID;

CREATE TABLE windrow_usage (
  tenant TEXT NOT NULL,
  period INTEGER NOT NULL,
  credits INTEGER NOT NULL,
  PRIMARY KEY (tenant, period)
) WITHOUT ROWID;

CREATE TABLE windrow_usage_run (
  id TEXT NOT NULL PRIMARY KEY,
  tenant TEXT NOT NULL,
  period INTEGER NOT NULL,
  is_open INTEGER NOT NULL DEFAULT 1
) WITHOUT ROWID;

CREATE INDEX windrow_usage_run_tenant ON windrow_usage_run (tenant, period);

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

CREATE VIEW windrow_job AS
SELECT * FROM windrow_job_live
UNION ALL
SELECT * FROM windrow_job_finished;
