-- A running job, if the token is good; its row stays as it is until the transaction ends.
-- :id, :token
SELECT id FROM windrow.job_live
 WHERE id = :id::uuid AND lease = :token::uuid AND state = 'active'
   FOR NO KEY UPDATE
