-- Forget a worker.
-- :id
DELETE FROM windrow_worker WHERE id = :id
