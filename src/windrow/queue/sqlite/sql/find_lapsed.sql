-- Whether leases have run out and are still there.
-- :now
-- Returns 1 if there are.
SELECT 1 FROM windrow_lease INDEXED BY windrow_lease_expiry WHERE expires_at <= :now LIMIT 1
