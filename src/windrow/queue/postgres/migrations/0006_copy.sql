-- Moving jobs between databases. The outbox: what was taken from here and may not be there yet, one
-- row for each job, group and schedule. The inbox: which parcels were taken in, and what became of
-- them, so that none is taken in twice.
CREATE TABLE windrow.copy_outbox (
    number bigint GENERATED ALWAYS AS IDENTITY,
    parcel uuid NOT NULL,
    target text NOT NULL,
    item text NOT NULL,
    body text NOT NULL
);
CREATE INDEX copy_outbox_parcel ON windrow.copy_outbox (parcel, number);

CREATE TABLE windrow.copy_inbox (
    parcel uuid PRIMARY KEY,
    received_at timestamptz NOT NULL,
    receipt text NOT NULL
);
