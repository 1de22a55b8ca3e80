-- The definition of every table, index and view, each table followed by its indexes.
-- Returns sql.
SELECT sql FROM sqlite_master
WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite#_%' ESCAPE '#'
ORDER BY type = 'view', tbl_name, type = 'index', name
