-- Let a queue be claimed again. :name.
DELETE FROM windrow.queue WHERE name = :name::text
