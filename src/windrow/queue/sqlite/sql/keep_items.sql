-- Items that the target refused go into a new parcel.
-- :parcel :next :items json array of ids
UPDATE windrow_copy_outbox SET parcel = :next
WHERE parcel = :parcel AND item IN (SELECT value FROM json_each(:items))
