-- New jobs come after the ones that were copied in.
-- :seq the last one that must not be given away
UPDATE sqlite_sequence SET seq = max(seq, :seq) WHERE name = 'windrow_job_live'
