-- Record the folder of the embedded index, unless another one than `before` is recorded. The
-- expiry lies after any time that a leader's could.
-- takes folder text, before text, expires_at time
-- gives role text
INSERT INTO windrow.leader AS leader (role, holder, expires_at)
VALUES ('index folder', :folder, :expires_at)
ON CONFLICT (role) DO UPDATE SET holder = excluded.holder
 WHERE leader.holder = :before
RETURNING role
