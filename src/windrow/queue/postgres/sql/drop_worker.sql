-- Forget a worker. :id. Returns id if it was there.
DELETE FROM windrow.worker WHERE id = :id::uuid RETURNING id
