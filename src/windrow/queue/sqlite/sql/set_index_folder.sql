-- Record the folder that holds the embedded index, unless one is recorded other than :before (null: none).
-- :folder :before. Returns role if it was recorded. It is a role that nobody else ever takes over.
INSERT INTO windrow_leader (role, holder, expires_at)
VALUES ('index folder', :folder, 253370764800000000)
ON CONFLICT (role) DO UPDATE SET holder = excluded.holder
WHERE windrow_leader.holder = :before
RETURNING role
