-- A page of documents of a collection, in the order of their places. :tenant :collection; :source
-- (null: any); behind :after_source, :after_uri and :after_branch; :limit.
-- :only_noted: skipped, or with secrets taken out.
SELECT id, tenant, collection, source, uri, branch, title, language, tags, metadata, content_hash,
       content, pending, size, skipped, dated_at, created_at, changed_at
  FROM windrow.document
 WHERE tenant = :tenant::text AND collection = :collection::text
   AND (:source::text IS NULL OR source = :source)
   AND (source, uri, branch) > (:after_source::text, :after_uri::text, :after_branch::text)
   AND (NOT :only_noted::boolean OR skipped IS NOT NULL OR metadata ->> 'redacted' IS NOT NULL)
 ORDER BY source, uri, branch
 LIMIT :limit::integer
