-- Forget the workers that are not alive any more.
-- :now
DELETE FROM windrow_worker WHERE expires_at <= :now
