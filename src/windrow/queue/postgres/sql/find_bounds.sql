-- The bounded ones of some queues. :queues JSON array of names. Returns name, max_depth, on_full.
-- gate enqueue
SELECT name, max_depth, on_full
  FROM windrow.queue
 WHERE max_depth IS NOT NULL
   AND name = ANY (ARRAY(SELECT json_array_elements_text(:queues::text::json)))
