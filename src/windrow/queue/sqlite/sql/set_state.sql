-- Unclaimed jobs change their state where they are.
-- :seqs json array, :state
UPDATE job_live SET state = :state WHERE seq IN (SELECT value FROM json_each(:seqs))
