-- Ready jobs give the places of their limits back: they are held again, before the other held jobs of
-- their keys, and keep their places in the line of their queue.
-- :seqs json array
UPDATE windrow_job_live SET state = 'held', is_placed = 1
WHERE seq IN (SELECT value FROM json_each(:seqs))
