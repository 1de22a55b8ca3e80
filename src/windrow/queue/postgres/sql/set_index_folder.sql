-- Record the folder that holds the embedded index, unless one is recorded other than :before (null: none).
-- :folder :before. Returns role if it was recorded. It is a role that nobody else ever takes over.
INSERT INTO windrow.leader AS leader (role, holder, expires_at)
VALUES ('index folder', :folder::text, '9999-01-01 00:00:00+00')
    ON CONFLICT (role) DO UPDATE SET holder = excluded.holder
 WHERE leader.holder = :before::text
RETURNING role
