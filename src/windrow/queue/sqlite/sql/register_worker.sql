-- Say that a worker is alive, for so many seconds from now.
-- :id :name :host :pid :queues and :kinds (JSON arrays or null) :concurrency :running :version
-- :trouble or null, :expires_at :now
INSERT INTO windrow_worker
  (id, name, host, pid, queues, kinds, concurrency, running, version, trouble,
   started_at, seen_at, expires_at)
VALUES
  (:id, :name, :host, :pid, :queues, :kinds, :concurrency, :running, :version, :trouble,
   :now, :now, :expires_at)
ON CONFLICT (id) DO UPDATE SET
  name = excluded.name, host = excluded.host, pid = excluded.pid, queues = excluded.queues,
  kinds = excluded.kinds, concurrency = excluded.concurrency, running = excluded.running,
  version = excluded.version, trouble = excluded.trouble,
  seen_at = excluded.seen_at, expires_at = excluded.expires_at
