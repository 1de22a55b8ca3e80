-- The jobs stay where they are, in Windrow's tables; unified_queue and all that keeps it in step go.
DROP TRIGGER IF EXISTS windrow_unified_payload_insert;
DROP TRIGGER IF EXISTS windrow_unified_payload_update;
DROP TRIGGER IF EXISTS windrow_unified_live_update;
DROP TRIGGER IF EXISTS windrow_unified_live_delete;
DROP TRIGGER IF EXISTS windrow_unified_finished_update;
DROP TRIGGER IF EXISTS windrow_unified_finished_delete;
DROP TRIGGER IF EXISTS windrow_unified_lease_insert;
DROP TRIGGER IF EXISTS windrow_unified_lease_update;
-- Its own triggers first: dropping a table deletes its rows.
DROP TRIGGER IF EXISTS unified_queue_refuse_delete;
DROP TRIGGER IF EXISTS unified_queue_delete;
DROP TABLE IF EXISTS unified_queue;
DROP VIEW IF EXISTS windrow_unified_mirror;
DROP VIEW IF EXISTS windrow_unified_start;
DROP VIEW IF EXISTS windrow_unified_end;
DROP VIEW IF EXISTS windrow_unified_release;
DROP VIEW IF EXISTS windrow_unified_gone;
DROP VIEW IF EXISTS windrow_unified_replaced;
DROP VIEW IF EXISTS windrow_unified_row;
DROP VIEW IF EXISTS windrow_unified_clock;
DROP TABLE IF EXISTS windrow_unified_job;
DROP TABLE IF EXISTS windrow_unified_kind;
DROP TABLE IF EXISTS windrow_unified_busy;
DROP TABLE IF EXISTS windrow_unified_byte;
