-- Places in the line for jobs that are promoted. They come from the same numbers as seq, so that a
-- job inserted later stands behind them.
-- :count
UPDATE sqlite_sequence SET seq = seq + :count WHERE name = 'windrow_job_live'
