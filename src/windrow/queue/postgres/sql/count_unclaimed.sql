-- How many jobs of queues are unclaimed, by the tally. :queues JSON array of names.
-- Returns queue, depth, and how many rows were added up (deltas).
-- gate enqueue
SELECT queue, sum(n)::bigint AS depth, count(*) AS deltas
  FROM windrow.tally
 WHERE queue = ANY (ARRAY(SELECT json_array_elements_text(:queues::text::json)))
   AND state IN ('scheduled', 'held', 'paused', 'ready')
 GROUP BY queue
