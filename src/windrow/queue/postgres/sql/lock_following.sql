-- Let only one transaction at a time make members of groups followers. Two that do not see each
-- other could each add one half of a circle of jobs that wait for one another.
SELECT pg_advisory_xact_lock(hashtextextended('windrow.following', 0)) IS NULL AS is_alone
