-- An item of a parcel goes into the outbox.
-- :parcel :target :item (its id) :body (json)
INSERT INTO windrow_copy_outbox (parcel, target, item, body) VALUES (:parcel, :target, :item, :body)
