-- The parcels of the outbox, oldest first. Returns parcel, target.
SELECT parcel, min(target) AS target FROM windrow.copy_outbox GROUP BY parcel ORDER BY parcel
