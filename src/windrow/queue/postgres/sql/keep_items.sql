-- Items that the target refused go into a new parcel. :parcel, :next, :items (their ids).
UPDATE windrow.copy_outbox SET parcel = :next::uuid
 WHERE parcel = :parcel::uuid AND item = ANY (:items::text[])
