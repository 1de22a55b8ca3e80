-- Notes of a group; those that it has stay as they are. :group_id, :subject, :texts.
INSERT INTO windrow.group_note (group_id, subject, text)
SELECT DISTINCT :group_id::uuid, :subject::text, noted.text
  FROM unnest(:texts::text[]) AS noted (text)
 ORDER BY noted.text
ON CONFLICT DO NOTHING
