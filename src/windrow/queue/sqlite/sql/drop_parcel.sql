-- A parcel has arrived.
-- :parcel
DELETE FROM windrow_copy_outbox WHERE parcel = :parcel
