-- How many jobs each queue has in each state. Returns queue, state, n, and the number of rows that
-- were added up (deltas).
SELECT queue, state, sum(n)::bigint AS n, count(*) AS deltas
  FROM windrow.tally
 GROUP BY queue, state
