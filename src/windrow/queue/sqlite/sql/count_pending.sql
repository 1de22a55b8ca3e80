-- Documents that a crawl put into a source, and contents that they wait for. :tenant :collection :source
-- :run (the crawl; null: whoever put them there) :limit. Returns pending, documents (how many there are)
-- and waiting (how many of them wait), those that wait first; refused (those of them that the index
-- does not take: nothing is to come for them) and why (of one of these).
SELECT CASE WHEN skipped IS NULL THEN pending END AS pending, count(*) OVER () AS documents,
       count(pending) OVER () AS waiting,
       count(CASE WHEN pending IS NOT NULL THEN skipped END) OVER () AS refused,
       max(CASE WHEN pending IS NOT NULL THEN skipped END) OVER () AS why
  FROM windrow_document
 WHERE tenant = :tenant AND collection = :collection AND source = :source
   AND (:run IS NULL OR metadata ->> 'crawl' = :run)
 ORDER BY 1 NULLS LAST
 LIMIT :limit
