-- A parcel has arrived. :parcel.
DELETE FROM windrow.copy_outbox WHERE parcel = :parcel::uuid
