-- Give a role back, if it is ours. :role, :holder. Returns role.
DELETE FROM windrow.leader WHERE role = :role::text AND holder = :holder::text RETURNING role
