-- Remove the events up to a number. :seq
DELETE FROM windrow_event WHERE seq <= :seq
