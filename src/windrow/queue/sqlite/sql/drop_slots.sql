-- A slot whose job is in use no more.
-- :key :seq
DELETE FROM windrow_job_slot WHERE key = :key AND seq = :seq
