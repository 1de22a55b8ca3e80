-- The last migration that was applied.
-- Returns version.
SELECT ifnull(max(version), 0) AS version FROM windrow_migration
