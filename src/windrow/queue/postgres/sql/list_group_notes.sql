-- A page of a group's notes on a subject, in their own order. :group_id, :subject, :after (a text, or
-- empty), :limit. Returns text.
SELECT text FROM windrow.group_note
 WHERE group_id = :group_id::uuid AND subject = :subject::text AND text > :after::text
 ORDER BY text
 LIMIT :limit::bigint
