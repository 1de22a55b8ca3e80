-- Say that a worker is alive, for so many seconds from now.
-- :id :name :host :pid :queues and :kinds (JSON arrays or null) :concurrency :running :version
-- :expires_at :now
INSERT INTO windrow_worker
  (id, name, host, pid, queues, kinds, concurrency, running, version, started_at, seen_at, expires_at)
VALUES
  (:id, :name, :host, :pid, :queues, :kinds, :concurrency, :running, :version, :now, :now, :expires_at)
ON CONFLICT (id) DO UPDATE SET
  name = excluded.name, host = excluded.host, pid = excluded.pid, queues = excluded.queues,
  kinds = excluded.kinds, concurrency = excluded.concurrency, running = excluded.running,
  version = excluded.version, seen_at = excluded.seen_at, expires_at = excluded.expires_at
