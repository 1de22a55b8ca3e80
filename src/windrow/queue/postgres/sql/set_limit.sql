-- Make or change a limit. :key, :active, :per_second, :burst, :weight. A bucket that is larger now
-- fills up from what it has.
INSERT INTO windrow.job_limit (key, active, per_second, burst, weight)
VALUES (:key::text, :active::integer, :per_second::double precision, :burst::integer,
        :weight::double precision)
    ON CONFLICT (key) DO UPDATE
   SET active = excluded.active, per_second = excluded.per_second, burst = excluded.burst,
       weight = excluded.weight
