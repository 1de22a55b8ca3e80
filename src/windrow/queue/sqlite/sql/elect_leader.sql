-- Take a role that is free, whose holder's time is over, or that is ours already.
-- :role :holder :seconds :now
-- Returns role if it is the holder's now.
INSERT INTO windrow_leader (role, holder, expires_at)
VALUES (:role, :holder, :now + CAST(:seconds * 1000000 AS INTEGER))
ON CONFLICT (role) DO UPDATE SET holder = excluded.holder, expires_at = excluded.expires_at
WHERE windrow_leader.holder = excluded.holder OR windrow_leader.expires_at <= :now
RETURNING role
