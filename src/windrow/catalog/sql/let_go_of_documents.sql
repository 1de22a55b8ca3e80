-- Mark the contents of these documents as dropped.
-- takes ids uuid[]
-- gate tenant
UPDATE windrow.content SET dropped_at = {now}
 WHERE id IN (SELECT content FROM windrow.document WHERE id {in ids}
               UNION ALL
              SELECT pending FROM windrow.document WHERE id {in ids})
