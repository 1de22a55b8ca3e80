-- Calls that have not ended are counted by the stage they are in, however many have.
CREATE INDEX call_under_way ON windrow.call (status, tenant)
    WHERE status NOT IN ('done', 'failed');
