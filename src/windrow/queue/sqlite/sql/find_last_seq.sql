-- The last seq that was given away. The writer gives out the next ones itself, because a statement
-- run for many rows cannot return them.
-- Returns seq.
SELECT ifnull(max(seq), 0) AS seq FROM sqlite_sequence WHERE name = 'windrow_job_live'
