-- Somebody asks for jobs: their lanes are served. :queues, :kinds, :tenants or null for all.
DELETE FROM windrow.unserved
 WHERE (queue, kind, tenant) IN (
           SELECT queue, kind, tenant
             FROM windrow.unserved
            WHERE (:queues::text[] IS NULL OR queue = ANY (:queues))
              AND (:kinds::text[] IS NULL OR kind = ANY (:kinds))
              AND (:tenants::text[] IS NULL OR tenant = ANY (:tenants))
              FOR UPDATE SKIP LOCKED)
