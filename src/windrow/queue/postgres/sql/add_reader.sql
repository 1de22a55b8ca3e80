-- Who sleeps until something happens. :id; :seconds until it is taken for dead. By the server's clock.
WITH gone AS (
    DELETE FROM windrow.event_reader WHERE until < clock_timestamp() AND id <> :id::uuid
)
INSERT INTO windrow.event_reader (id, until)
VALUES (:id::uuid, clock_timestamp() + :seconds::double precision * interval '1 second')
    ON CONFLICT (id) DO UPDATE SET until = excluded.until
