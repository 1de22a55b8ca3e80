-- Documents that are still as a crawl left them. :rows, JSON: id, crawl (null: of none). Returns id.
DELETE FROM windrow_document
 WHERE id IN (SELECT value ->> 'id' FROM json_each(:rows)
               WHERE value ->> 'crawl' IS windrow_document.metadata ->> 'crawl')
RETURNING id
