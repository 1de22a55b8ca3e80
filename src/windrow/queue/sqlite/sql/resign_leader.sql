-- Give a role back, if it is ours.
-- :role :holder
-- Returns role.
DELETE FROM windrow_leader WHERE role = :role AND holder = :holder RETURNING role
