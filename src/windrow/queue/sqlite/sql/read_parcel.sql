-- What is in a parcel, in the order it was put in.
-- :parcel
-- Returns target, body.
SELECT target, body FROM windrow_copy_outbox WHERE parcel = :parcel ORDER BY number
