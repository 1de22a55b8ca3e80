-- A migration was applied.
-- :version :name :now
INSERT INTO migration (version, name, applied_at) VALUES (:version, :name, :now)
