-- Nobody is to be told under this id any more, of work, of ends or of events. :id.
WITH awake AS (
    DELETE FROM windrow.sleeper WHERE id = :id::uuid
),
reading AS (
    DELETE FROM windrow.event_reader WHERE id = :id::uuid
)
DELETE FROM windrow.waiter WHERE id = :id::uuid
