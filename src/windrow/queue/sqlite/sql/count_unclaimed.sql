-- How many jobs of a queue are unclaimed, by the tally.
-- :queue
-- Returns depth.
SELECT ifnull(sum(count), 0) AS depth FROM windrow_tally
WHERE queue = :queue AND state IN ('scheduled', 'held', 'paused', 'ready')
