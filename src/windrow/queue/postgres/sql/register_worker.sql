-- Say that a worker is alive, for so many seconds from now, and forget those that are not any more.
-- :id, :name, :host, :pid, :queues or null, :kinds or null, :concurrency, :running, :version,
-- :trouble or null, :seconds; :now or null. Returns nothing.
-- The dead are removed after the insert, as nothing refers to them there, and without waiting: two
-- that take each other for dead do not wait for each other.
WITH gone AS (
    DELETE FROM windrow.worker
     WHERE id IN (SELECT id
                    FROM windrow.worker
                   WHERE expires_at <= coalesce(:now::timestamptz, statement_timestamp())
                     AND id <> :id::uuid
                     FOR UPDATE SKIP LOCKED)
)
INSERT INTO windrow.worker (id, started_at, seen_at, expires_at, pid, concurrency, running, name, host,
                            version, trouble, queues, kinds)
SELECT :id::uuid, moment.now, moment.now, moment.now + :seconds::double precision * interval '1 second',
       :pid::integer, :concurrency::integer, :running::integer, :name::text, :host::text,
       :version::text, :trouble::text, :queues::text[], :kinds::text[]
  FROM (SELECT coalesce(:now::timestamptz, statement_timestamp()) AS now) AS moment
    ON CONFLICT (id) DO UPDATE
   SET seen_at = excluded.seen_at, expires_at = excluded.expires_at, pid = excluded.pid,
       concurrency = excluded.concurrency, running = excluded.running, name = excluded.name,
       host = excluded.host, version = excluded.version, trouble = excluded.trouble,
       queues = excluded.queues, kinds = excluded.kinds
