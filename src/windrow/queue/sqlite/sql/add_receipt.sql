-- A parcel was received.
-- :parcel :receipt (json) :now
INSERT INTO windrow_copy_inbox (parcel, received_at, receipt) VALUES (:parcel, :now, :receipt)
