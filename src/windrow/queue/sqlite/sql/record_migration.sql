-- A migration was applied.
-- :version :name :now
INSERT INTO windrow_migration (version, name, applied_at) VALUES (:version, :name, :now)
