-- A dialect is not installed any more. :name.
DELETE FROM windrow_dialect WHERE name = :name
