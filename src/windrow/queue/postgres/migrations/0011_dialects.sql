-- Dialects: which foreign schemas lie over the queue. Their writes are those of a caller's
-- transaction, so what they tell of groups is drafted too.
CREATE TABLE windrow.dialect (
    name text PRIMARY KEY,
    version text NOT NULL,
    installed_at timestamptz NOT NULL
);

ALTER TABLE windrow.event_draft ADD COLUMN details json;

CREATE OR REPLACE FUNCTION windrow.publish_draft() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO windrow.event (at, leaf, group_id, type, state, queue, kind, tenant, job_ids,
                               details)
    VALUES (NEW.at, windrow.event_leaf(NEW.at), NEW.group_id, NEW.type, NEW.state, NEW.queue,
            NEW.kind, NEW.tenant, NEW.job_ids, NEW.details);
    DELETE FROM windrow.event_draft WHERE number = NEW.number;
    RETURN NULL;
END
$$;
