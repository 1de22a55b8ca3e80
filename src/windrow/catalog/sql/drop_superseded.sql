-- Mark contents as dropped that documents stop using when these rows are put: what was pending and
-- no longer is, and all contents of a document that has nothing to search any more.
-- takes documents (tenant tenant, collection text, source text, uri text, branch text,
--   pending uuid)
-- gate tenant
UPDATE windrow.content SET dropped_at = {now}
 WHERE id IN (
   SELECT had.pending
     FROM {rows documents}
     {inner_join} windrow.document AS had
       ON had.tenant = documents.tenant AND had.collection = documents.collection
      AND had.source = documents.source AND had.uri = documents.uri
      AND had.branch = documents.branch
    WHERE had.pending IS NOT NULL AND had.pending {is_not} documents.pending
    UNION ALL
   SELECT had.content
     FROM {rows documents}
     {inner_join} windrow.document AS had
       ON had.tenant = documents.tenant AND had.collection = documents.collection
      AND had.source = documents.source AND had.uri = documents.uri
      AND had.branch = documents.branch
    WHERE had.content IS NOT NULL AND documents.pending IS NULL)
