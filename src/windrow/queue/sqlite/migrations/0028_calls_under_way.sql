-- Calls that have not ended are counted by the stage they are in, however many have.
CREATE INDEX windrow_call_under_way ON windrow_call (status, tenant)
  WHERE status NOT IN ('done', 'failed');
