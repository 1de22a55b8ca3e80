-- Take a role that is free, whose holder's time is over, or that is ours already.
-- :role, :holder, :seconds; :now or null. Returns role if it is the holder's now.
-- Of a role that is another's the row is only read: a conflict would lock it, and each worker asks
-- again and again. clock_timestamp: while we waited for another's row lock, time went on.
INSERT INTO windrow.leader AS leader (role, holder, expires_at)
SELECT :role::text, :holder::text,
       coalesce(:now::timestamptz, clock_timestamp())
           + :seconds::double precision * interval '1 second'
 WHERE NOT EXISTS (SELECT FROM windrow.leader AS held
                    WHERE held.role = :role::text AND held.holder <> :holder::text
                      AND held.expires_at > coalesce(:now::timestamptz, clock_timestamp()))
    ON CONFLICT (role) DO UPDATE
   SET holder = excluded.holder, expires_at = excluded.expires_at
 WHERE leader.holder = excluded.holder
    OR leader.expires_at <= coalesce(:now::timestamptz, clock_timestamp())
RETURNING role
