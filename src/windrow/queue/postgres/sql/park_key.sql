-- Stop a key for a time. :key; :until, or :seconds from now, or neither: it goes on; :now or null.
INSERT INTO windrow.job_limit (key, parked_until)
VALUES (:key::text,
        coalesce(:until::timestamptz,
                 coalesce(:now::timestamptz, statement_timestamp())
                 + :seconds::double precision * interval '1 second'))
    ON CONFLICT (key) DO UPDATE SET parked_until = excluded.parked_until
