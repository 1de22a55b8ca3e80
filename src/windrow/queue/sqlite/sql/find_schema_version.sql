-- The last migration that was applied, and the name of the first one.
-- Returns version, first.
SELECT ifnull(max(version), 0) AS version,
       (SELECT name FROM windrow_migration ORDER BY version LIMIT 1) AS first
  FROM windrow_migration
