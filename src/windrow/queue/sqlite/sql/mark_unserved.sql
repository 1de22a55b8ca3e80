-- Nobody serves a lane: its jobs get only the places that no other job wants.
-- :queue :kind :tenant ('' for none) :until
INSERT INTO windrow_unserved (queue, kind, tenant, until) VALUES (:queue, :kind, :tenant, :until)
ON CONFLICT (queue, kind, tenant) DO UPDATE SET until = excluded.until
