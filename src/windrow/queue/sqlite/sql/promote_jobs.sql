-- A held job becomes ready and takes its place in the line.
-- :seq :place
UPDATE windrow_job_live SET state = 'ready', place = :place WHERE seq = :seq
