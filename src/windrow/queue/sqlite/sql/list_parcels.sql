-- The parcels of the outbox, oldest first.
-- Returns parcel, target.
SELECT parcel, max(target) AS target FROM windrow_copy_outbox GROUP BY parcel ORDER BY parcel
