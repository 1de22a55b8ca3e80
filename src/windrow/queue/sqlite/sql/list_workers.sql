-- The workers that are alive, by name.
-- :now
SELECT * FROM windrow_worker WHERE expires_at > :now ORDER BY name, id
