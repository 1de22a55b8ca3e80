-- Delete documents that are still as a crawl left them; a null crawl stands for none.
-- takes pages (id uuid, crawl text)
-- gives id uuid
-- gate tenant
DELETE FROM windrow.document
 WHERE id IN (SELECT id FROM {rows pages})
   AND (id, coalesce(metadata ->> 'crawl', '')) IN (SELECT id, coalesce(crawl, '') FROM {rows pages})
RETURNING id
