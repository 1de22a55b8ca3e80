-- Wait for the commits under way that looked for sleepers before now, so that what they made can be
-- seen. They take moments; one that takes longer is not waited for (SQLSTATE 55P03).
SELECT set_config('lock_timeout', '1s', true),
       pg_advisory_xact_lock(hashtextextended('windrow.wake', 0))
