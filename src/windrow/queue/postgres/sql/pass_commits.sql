-- Whether no commit is under way that may have looked for sleepers before now. Not waited for: who
-- waits for this lock would hold up all commits that come after.
-- Returns is_quiet.
SELECT pg_try_advisory_xact_lock(hashtextextended('windrow.wake', 0)) AS is_quiet
