-- A parcel was received. :parcel, :receipt (JSON text); :now or null. Who receives it at the same time
-- waits here, fails on the key and begins again, to find the receipt.
INSERT INTO windrow.copy_inbox (parcel, received_at, receipt)
VALUES (:parcel::uuid, coalesce(:now::timestamptz, statement_timestamp()), :receipt::text)
