-- A line of a job's error history.
-- :seq :at :reason :type :message :traceback
INSERT INTO windrow_job_error (seq, at, reason, type, message, traceback)
VALUES (:seq, :at, :reason, :type, :message, :traceback)
