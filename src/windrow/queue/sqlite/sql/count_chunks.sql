-- How many chunks each of these contents has. :ids. Returns id, chunks.
SELECT id, chunks FROM windrow_content WHERE id IN (SELECT value FROM json_each(:ids))
