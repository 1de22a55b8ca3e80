-- Leases that hold no job any more.
-- :tokens json array
DELETE FROM windrow_lease WHERE token IN (SELECT value FROM json_each(:tokens)) AND pending <= 0
