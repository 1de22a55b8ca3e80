-- Moving jobs between databases. The outbox: what was taken from here and may not be there yet, one
-- row for each job, group and schedule. The inbox: which parcels were taken in, and what became of
-- them, so that none is taken in twice.
CREATE TABLE windrow_copy_outbox (
  number INTEGER PRIMARY KEY,
  parcel TEXT NOT NULL,
  target TEXT NOT NULL,
  item TEXT NOT NULL,
  body TEXT NOT NULL
);

CREATE INDEX windrow_copy_outbox_parcel ON windrow_copy_outbox (parcel, number);

CREATE TABLE windrow_copy_inbox (
  parcel TEXT PRIMARY KEY,
  received_at INTEGER NOT NULL,
  receipt TEXT NOT NULL
) WITHOUT ROWID;
