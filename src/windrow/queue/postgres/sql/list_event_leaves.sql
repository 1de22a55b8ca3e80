-- The leaves of events that have anything in them, the oldest first. :seconds that events are kept;
-- :now or null. Returns leaf, is_old: whether its last event is older. One look-up for each leaf.
SELECT leaf.name AS leaf,
       last.at < coalesce(:now::timestamptz, statement_timestamp())
                 - :seconds::double precision * interval '1 second' AS is_old
  FROM (SELECT number, 'event_' || to_char(number, 'FM00') AS name
          FROM generate_series(1, 32) AS number) AS leaf
 CROSS JOIN LATERAL (
       SELECT event.seq, event.at
         FROM windrow.event
        WHERE event.leaf = leaf.number
        ORDER BY event.seq DESC
        LIMIT 1) AS last
 ORDER BY last.seq
