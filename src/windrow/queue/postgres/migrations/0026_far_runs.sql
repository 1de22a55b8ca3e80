-- Runs of jobs whose queue is elsewhere, in BullMQ, and whose rows are here: the last run that wrote,
-- and, once one has ended, how (JSON): that is written with its rows, and stands. Only the owner and
-- workers read and write this: no tenant's role is given anything.
CREATE TABLE windrow.far_run (
    key text PRIMARY KEY,
    run bigint NOT NULL,
    ended text,
    kept_at timestamptz NOT NULL
);
