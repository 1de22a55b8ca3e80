-- The queues whose depth is bounded.
-- Returns name, max_depth, on_full.
SELECT name, max_depth, on_full FROM windrow_queue WHERE max_depth IS NOT NULL
