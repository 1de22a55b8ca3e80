-- Retention: how long finished jobs are kept, by queue and state; members of a group go with it.
--
-- Finished jobs lie in a ring of leaves, one for each hour in which they expire, used again every 28
-- hours: a leaf is emptied as a whole when its hour is over and nobody ever has to make, attach or
-- drop one. A job that is kept for more than a day, or with its group, or for ever lies in
-- job_finished_kept. docs/decisions/0005-retention.md says why.

ALTER TABLE windrow.queue
    ADD COLUMN completed_seconds bigint,
    ADD COLUMN failed_seconds bigint,
    ADD COLUMN cancelled_seconds bigint;

-- Set while the group has ended and no member of it runs again.
ALTER TABLE windrow.job_group ADD COLUMN expires_at timestamptz;
CREATE INDEX job_group_expiry ON windrow.job_group (expires_at) WHERE expires_at IS NOT NULL;
UPDATE windrow.job_group
   SET expires_at = ended_at + coalesce(retention_seconds, 86400) * interval '1 second'
 WHERE ended_at IS NOT NULL AND pending = 0 AND coalesce(retention_seconds, 0) >= 0;

-- When everything due was last removed.
CREATE TABLE windrow.pruning (
    done_at timestamptz NOT NULL
);

ALTER TABLE windrow.job DETACH PARTITION windrow.job_finished;
DROP INDEX windrow.job_finished_id, windrow.job_finished_group, windrow.job_finished_tenant,
    windrow.job_finished_unique, windrow.job_finished_blob, windrow.job_finished_unsuccessful;
ALTER TABLE windrow.job_finished RENAME TO job_finished_former;
ALTER TABLE windrow.job_finished_default RENAME TO job_finished_former_default;

-- The leaf of a finished job: 1 to 28 by the hour of its expiry; 0 for those that are kept longer.
ALTER TABLE windrow.job ADD COLUMN leaf smallint;

CREATE TABLE windrow.job_finished PARTITION OF windrow.job
    FOR VALUES IN ('completed', 'failed', 'cancelled')
    PARTITION BY LIST (leaf);

CREATE TABLE windrow.job_finished_kept PARTITION OF windrow.job_finished FOR VALUES IN (0, NULL);

DO $$
BEGIN
    FOR leaf IN 1..28 LOOP
        EXECUTE format('CREATE TABLE windrow.job_finished_%s PARTITION OF windrow.job_finished '
                       'FOR VALUES IN (%s)', to_char(leaf, 'FM00'), leaf);
    END LOOP;
END $$;

CREATE INDEX job_finished_id ON windrow.job_finished (id);
CREATE INDEX job_finished_group ON windrow.job_finished (group_id, id) WHERE group_id IS NOT NULL;
CREATE INDEX job_finished_tenant ON windrow.job_finished (tenant, id) WHERE tenant IS NOT NULL;
CREATE INDEX job_finished_unique ON windrow.job_finished (unique_key, id)
    WHERE unique_key IS NOT NULL;
CREATE INDEX job_finished_blob ON windrow.job_finished (result_hash)
    WHERE result_hash IS NOT NULL;
CREATE INDEX job_finished_unsuccessful ON windrow.job_finished (state, id)
    WHERE state <> 'completed';
CREATE INDEX job_finished_kept_expiry ON windrow.job_finished_kept (expires_at)
    WHERE expires_at < 'infinity';

-- What had finished before is removed job by job.
INSERT INTO windrow.job_finished
SELECT former.*, 0 FROM windrow.job_finished_former AS former;
UPDATE windrow.job_finished SET expires_at = NULL WHERE group_id IS NOT NULL;
DROP TABLE windrow.job_finished_former;
