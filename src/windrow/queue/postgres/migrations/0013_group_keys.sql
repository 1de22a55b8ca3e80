-- Keys of a group's members, which it takes once and never again, however their jobs ended; and how
-- many members it takes at all. A key is kept as the 16 bytes of its hash. Insert-only: written under
-- the lock of the group's row, and gone with the group.
CREATE TABLE windrow.group_key (
    group_id uuid NOT NULL,
    key bytea NOT NULL,
    job_id uuid NOT NULL,
    PRIMARY KEY (group_id, key)
);

ALTER TABLE windrow.job_group ADD COLUMN max_jobs bigint;
