-- A lease over the jobs of one claim that have the same lease length.
-- :token :worker :seconds :now :expires_at :pending :seqs (json array)
INSERT INTO windrow_lease (token, worker, seconds, claimed_at, expires_at, pending, job_seqs)
VALUES (:token, :worker, :seconds, :now, :expires_at, :pending, :seqs)
