-- Marks of lanes whose time is over.
-- :now
DELETE FROM windrow_unserved WHERE until <= :now
