-- Make searchable what is pending, now that the index has it.
-- takes contents (id uuid)
UPDATE windrow.document SET content = pending, pending = NULL, skipped = NULL
 WHERE pending IN (SELECT id FROM {rows contents})
