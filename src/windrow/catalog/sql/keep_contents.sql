-- Take back the mark of dropped contents that some document names.
-- takes ids uuid[]
UPDATE windrow.content AS dropped SET dropped_at = NULL
 WHERE id {in ids}
   AND (EXISTS (SELECT 1 FROM windrow.document AS document WHERE document.content = dropped.id)
        OR EXISTS (SELECT 1 FROM windrow.document AS document WHERE document.pending = dropped.id))
