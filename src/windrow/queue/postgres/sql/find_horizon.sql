-- How far the stream of events can be read, and from where on it is kept.
-- Returns last, the greatest number given out; horizon, up to which nothing can come any more; and
-- floor, up to which events were removed.
-- A transaction under way holds a lock on its ticket, a number smaller than those of its events. The
-- numbers given out are read before the locks, hence LATERAL with a reference: what has a number by
-- then, and no lock by the time these are read, has ended.
-- gate tenant
SELECT numbered.last, coalesce(ticket.oldest, numbered.last) AS horizon,
       (SELECT max(seq) FROM windrow.event_floor) AS floor
  FROM (SELECT last_value AS last FROM windrow.event_seq) AS numbered
 CROSS JOIN LATERAL (
       SELECT min(number) AS oldest
         FROM (SELECT ((classid::bigint & 65535) << 32) | objid::bigint AS number
                 FROM pg_locks
                WHERE locktype = 'advisory'
                  AND objsubid = 1
                  AND classid::bigint >> 16 = 30569
                  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
              ) AS ticket
        WHERE number < numbered.last) AS ticket
