-- Items of a parcel go into the outbox. :parcel; :target; :items (their ids) and :bodies (JSON texts).
INSERT INTO windrow.copy_outbox (parcel, target, item, body)
SELECT :parcel::uuid, :target::text, item, body
  FROM unnest(:items::text[], :bodies::text[]) WITH ORDINALITY AS given (item, body, place)
 ORDER BY place
