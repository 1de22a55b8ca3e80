-- How far the stream of events can be read, and from where on it is kept.
-- Returns horizon, the greatest number given out, and floor, up to which events were removed: they go
-- in their order. There is one writer, so nothing can come before what is there.
SELECT
  ifnull((SELECT seq FROM sqlite_sequence WHERE name = 'windrow_event'), 0) AS horizon,
  ifnull(
    (SELECT min(seq) - 1 FROM windrow_event),
    ifnull((SELECT seq FROM sqlite_sequence WHERE name = 'windrow_event'), 0)
  ) AS floor
