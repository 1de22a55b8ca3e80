-- The last of the first :limit events, if all of these are old: older than :before.
-- Returns seq, null if the very first is not old.
SELECT max(seq) AS seq
FROM (SELECT seq, at FROM windrow_event ORDER BY seq LIMIT :limit) AS first
WHERE seq < ifnull(
  (
    SELECT min(seq) FROM (SELECT seq, at FROM windrow_event ORDER BY seq LIMIT :limit)
    WHERE at >= :before
  ),
  9223372036854775807
)
