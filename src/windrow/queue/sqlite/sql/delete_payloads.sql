-- What deleted jobs carried.
-- :seqs json array
DELETE FROM windrow_job_payload WHERE seq IN (SELECT value FROM json_each(:seqs))
