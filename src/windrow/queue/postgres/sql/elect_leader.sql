-- Take a role that is free, whose holder's time is over, or that is ours already.
-- :role, :holder, :seconds; :now or null. Returns role if it is the holder's now.
-- clock_timestamp: while we waited for another's row lock, time went on.
INSERT INTO windrow.leader AS leader (role, holder, expires_at)
VALUES (:role::text, :holder::text,
        coalesce(:now::timestamptz, clock_timestamp())
            + :seconds::double precision * interval '1 second')
    ON CONFLICT (role) DO UPDATE
   SET holder = excluded.holder, expires_at = excluded.expires_at
 WHERE leader.holder = excluded.holder
    OR leader.expires_at <= coalesce(:now::timestamptz, clock_timestamp())
RETURNING role
