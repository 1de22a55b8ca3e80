-- Lock finished jobs that are about to be removed, apart from those somebody else is changing.
-- {leaf}; :ids. Returns id.
SELECT id FROM windrow.{leaf} WHERE id = ANY (:ids::uuid[]) ORDER BY id FOR UPDATE SKIP LOCKED
