-- A held job becomes ready and takes its place in the line: the one it had before it gave the places
-- of its limits back, else a new one.
-- :seq :place
UPDATE windrow_job_live
SET state = 'ready', place = CASE WHEN is_placed = 1 THEN place ELSE :place END, is_placed = 0
WHERE seq = :seq
