-- Record where contents were written in the index, and in how many chunks.
-- takes contents (id uuid, chunks int, space text)
UPDATE windrow.content AS content SET chunks = contents.chunks, space = contents.space
  FROM {rows contents}
 WHERE content.id = contents.id
