-- Forget a credential.
-- :tenant (empty: none) :name
DELETE FROM windrow_credential WHERE tenant = :tenant AND name = :name
