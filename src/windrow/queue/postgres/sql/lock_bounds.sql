-- Lock the bounded ones of some queues, in the order of their names. :queues JSON array of names.
-- Returns name, max_depth, on_full. A statement of its own: the depth is counted by a later one,
-- which sees what those inserted that this one waited for.
-- gate enqueue
SELECT name, max_depth, on_full
  FROM windrow.queue
 WHERE max_depth IS NOT NULL
   AND name = ANY (ARRAY(SELECT json_array_elements_text(:queues::text::json)))
 ORDER BY name
   FOR UPDATE
