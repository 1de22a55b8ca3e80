-- Nobody is to be told under this id any more, of work or of ends. :id.
WITH awake AS (
    DELETE FROM windrow.sleeper WHERE id = :id::uuid
)
DELETE FROM windrow.waiter WHERE id = :id::uuid
