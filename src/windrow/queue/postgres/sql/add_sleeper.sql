-- Who sleeps until there is work. :id; :queues, null for any; :seconds until it is taken for dead.
-- By the server's clock, whatever time the jobs are kept by. Those that are dead are removed.
WITH gone AS (
    DELETE FROM windrow.sleeper WHERE until < clock_timestamp() AND id <> :id::uuid
)
INSERT INTO windrow.sleeper (id, queues, until)
VALUES (:id::uuid, :queues::text[],
        clock_timestamp() + :seconds::double precision * interval '1 second')
    ON CONFLICT (id) DO UPDATE SET until = excluded.until
