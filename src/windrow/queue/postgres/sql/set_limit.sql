-- Make or change a limit. :key, :active, :per_second, :burst. A bucket that is larger now
-- fills up from what it has.
INSERT INTO windrow.job_limit (key, active, per_second, burst)
VALUES (:key::text, :active::integer, :per_second::double precision, :burst::integer)
    ON CONFLICT (key) DO UPDATE
   SET active = excluded.active, per_second = excluded.per_second, burst = excluded.burst
