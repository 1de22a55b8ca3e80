-- Changes nothing, but only a writer may run it: from here to the end of the caller's transaction
-- nobody else writes, so what is read stays true. (BEGIN IMMEDIATE does that where the store begins.)
DELETE FROM windrow_migration WHERE version < 0
