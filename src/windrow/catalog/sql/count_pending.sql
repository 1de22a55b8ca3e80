-- The documents of a source, or (run) those that a crawl put there, and the contents they wait
-- for. A row for each document, first those that wait: `documents` is how many there are,
-- `waiting` how many wait, `refused` how many of these the index has refused, `why` one reason.
-- takes tenant tenant, collection text, source text, run text, limit int
-- gives pending uuid, documents int, waiting int, refused int, why text
SELECT CASE WHEN skipped IS NULL THEN pending END AS pending, count(*) OVER () AS documents,
       count(pending) OVER () AS waiting,
       count(CASE WHEN pending IS NOT NULL THEN skipped END) OVER () AS refused,
       max(CASE WHEN pending IS NOT NULL THEN skipped END) OVER () AS why
  FROM windrow.document
 WHERE tenant = :tenant AND collection = :collection AND source = :source
   AND (:run IS NULL OR metadata ->> 'crawl' = :run)
 ORDER BY 1 NULLS LAST
 LIMIT :limit
