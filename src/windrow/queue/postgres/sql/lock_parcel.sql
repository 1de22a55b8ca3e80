-- What is in a parcel, in the order it was put in, locked: taken back once, and not while it is being
-- dropped. :parcel. Returns target, body.
SELECT target, body
  FROM windrow.copy_outbox
 WHERE parcel = :parcel::uuid
 ORDER BY number
   FOR UPDATE
