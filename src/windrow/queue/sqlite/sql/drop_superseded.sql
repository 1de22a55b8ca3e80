-- Contents that documents let go of when these rows are put: what was pending and is no more, and
-- of one that has nothing to be searched any more, all. :rows, JSON; :now.
UPDATE windrow_content SET dropped_at = :now
 WHERE id IN (
   SELECT let.go
     FROM (SELECT had.pending AS go, given.value ->> 'pending' AS wanted
             FROM json_each(:rows) AS given
             JOIN windrow_document AS had
               ON had.tenant = given.value ->> 'tenant'
              AND had.collection = given.value ->> 'collection'
              AND had.source = given.value ->> 'source' AND had.uri = given.value ->> 'uri'
              AND had.branch = given.value ->> 'branch'
            UNION ALL
           SELECT had.content, NULL
             FROM json_each(:rows) AS given
             JOIN windrow_document AS had
               ON had.tenant = given.value ->> 'tenant'
              AND had.collection = given.value ->> 'collection'
              AND had.source = given.value ->> 'source' AND had.uri = given.value ->> 'uri'
              AND had.branch = given.value ->> 'branch'
            WHERE given.value ->> 'pending' IS NULL) AS let
    WHERE let.go IS NOT NULL AND let.go IS NOT let.wanted)
