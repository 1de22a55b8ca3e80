-- A dialect is not installed any more. :name.
DELETE FROM windrow.dialect WHERE name = :name::text
