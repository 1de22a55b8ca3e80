-- Documents that are still as a crawl left them. :rows, JSON: id, crawl (null: of none). Returns id.
DELETE FROM windrow.document AS had
 USING json_to_recordset(:rows::text::json) AS given(id uuid, crawl text)
 WHERE had.id = given.id AND had.metadata ->> 'crawl' IS NOT DISTINCT FROM given.crawl
RETURNING had.id
