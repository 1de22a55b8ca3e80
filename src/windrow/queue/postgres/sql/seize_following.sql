-- As lock_following, at a time when nothing may be waited for. Returns is_alone: whether it was free.
-- Only Postgres has it: SQLite has one writer, who waits for nobody.
SELECT pg_try_advisory_xact_lock(hashtextextended('windrow.following', 0)) AS is_alone
