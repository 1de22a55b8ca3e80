-- The cached page of a key.
-- takes key bytes
-- gives page
SELECT {columns page} FROM windrow.page AS page WHERE key = :key
