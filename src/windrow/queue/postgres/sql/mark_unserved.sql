-- Lanes that nobody serves: their jobs get only the places that no other job wants. :queues, :kinds and
-- :tenants ('' for none) of the lanes, in order; :seconds; :now or null. Marks whose time is over are
-- removed.
WITH gone AS (
    DELETE FROM windrow.unserved
     WHERE (queue, kind, tenant) IN (
               SELECT queue, kind, tenant
                 FROM windrow.unserved
                WHERE until <= coalesce(:now::timestamptz, statement_timestamp())
                  AND (queue, kind, tenant) NOT IN (
                          SELECT queue, kind, tenant
                            FROM unnest(:queues::text[], :kinds::text[], :tenants::text[])
                                 AS lane (queue, kind, tenant))
                  FOR UPDATE SKIP LOCKED)
)
INSERT INTO windrow.unserved (queue, kind, tenant, until)
SELECT lane.queue, lane.kind, lane.tenant,
       coalesce(:now::timestamptz, statement_timestamp())
       + :seconds::double precision * interval '1 second'
  FROM unnest(:queues::text[], :kinds::text[], :tenants::text[]) AS lane (queue, kind, tenant)
    ON CONFLICT (queue, kind, tenant) DO UPDATE SET until = excluded.until
