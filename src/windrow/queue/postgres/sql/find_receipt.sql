-- What became of a parcel that was received before. :parcel. Returns receipt.
SELECT receipt FROM windrow.copy_inbox WHERE parcel = :parcel::uuid
