-- Forget a credential. :tenant (empty: none), :name. Returns name if it was there.
DELETE FROM windrow.credential WHERE tenant = :tenant::text AND name = :name::text RETURNING name
