-- Whether any migration was ever applied.
SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'windrow_migration'
