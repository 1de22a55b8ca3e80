"""P1: the dialect beside PGMQ itself, whose SQL comes with its client: the same functions, and the
same answers to the same calls."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pgmq
import pytest

from tests.conftest import MakeDatabase
from windrow.queue.store import Store

DIALECT = "pgmq"
# Where Windrow's differ on purpose, or PGMQ's own are of no use without its tables.
INNER = {"notify_queue_listeners", "acquire_queue_lock", "format_table_name"}

FUNCTIONS = """
    SELECT proname, pg_get_function_identity_arguments(oid) AS arguments,
           pg_get_function_result(oid) AS result, proretset, pronargdefaults AS defaults
      FROM pg_proc
     WHERE pronamespace = 'pgmq'::regnamespace AND proname !~ '^_'
"""
COLUMNS = """
    SELECT attname, format_type(atttypid, atttypmod) AS type
      FROM pg_attribute
     WHERE attrelid = $1::text::regclass AND attnum > 0 AND NOT attisdropped
     ORDER BY attnum
"""


@pytest.fixture
async def original(make_database: MakeDatabase) -> AsyncIterator[Any]:
    """A connection to a database with PGMQ itself."""
    connection = await asyncpg.connect(make_database())
    await connection.execute(pgmq.get_embedded_install_sql())
    yield connection
    await connection.close()


async def functions(db: Any) -> dict[tuple[str, str], tuple[str, bool, int]]:
    return {
        (row["proname"], row["arguments"]): (row["result"], row["proretset"], row["defaults"])
        for row in await db.fetch(FUNCTIONS)
        if row["proname"] not in INNER
    }


async def test_p1_every_function_of_pgmq_is_there(db: Any, original: Any) -> None:
    theirs, ours = await functions(original), await functions(db)
    assert len(theirs) > 60
    assert {key: ours.get(key) for key in theirs} == theirs
    assert sorted(key for key in ours if key not in theirs) == [
        ("archive", "queue_name text, msg_id bigint, read_ct integer"),
        ("dead_letters", "queue_name text"),
        ("delete", "queue_name text, msg_id bigint, read_ct integer"),
        ("send_topic", "routing_key text, msg jsonb, headers jsonb"),
        ("set_max_reads", "queue_name text, max_reads integer"),
    ]


async def test_p1_types_and_relations_have_the_same_columns(db: Any, original: Any) -> None:
    for connection in (db, original):
        await connection.execute("SELECT pgmq.create('jobs')")
    for name in ("message_record", "queue_record", "metrics_result", "q_jobs", "a_jobs"):
        theirs = await original.fetch(COLUMNS, f"pgmq.{name}")
        assert await db.fetch(COLUMNS, f"pgmq.{name}") == theirs, name


SCRIPT = """
    SELECT * FROM pgmq.send('jobs', '{"n": 1}')
    SELECT * FROM pgmq.send('jobs', '{"n": 2}', '{"x-pgmq-group": "a"}'::jsonb)
    SELECT * FROM pgmq.send('jobs', '{"n": 3}', 600)
    SELECT * FROM pgmq.send('jobs', '{"n": 4}', now() - interval '1 day')
    SELECT * FROM pgmq.send('jobs', '{"n": 5}', '{"x-pgmq-group": "a"}'::jsonb, 0)
    SELECT * FROM pgmq.send('jobs', '{"n": 6}', '{"h": 1}'::jsonb, now() - interval '1 day')
    SELECT * FROM pgmq.send_batch('jobs', ARRAY['7', '8']::jsonb[])
    SELECT * FROM pgmq.send_batch('jobs', ARRAY['9', 'null']::jsonb[], ARRAY['{}', NULL]::jsonb[])
    SELECT * FROM pgmq.send_batch('jobs', ARRAY['11']::jsonb[], 600)
    SELECT * FROM pgmq.send_batch('jobs', ARRAY['12']::jsonb[], ARRAY['{"a": 1}']::jsonb[], 0)
    SELECT * FROM pgmq.send_batch('jobs', ARRAY['13']::jsonb[], ARRAY['{}']::jsonb[], now())
    SELECT * FROM pgmq.send_batch('jobs', '{}'::jsonb[])
    SELECT * FROM pgmq.send_batch('jobs', NULL::jsonb[])
    SELECT * FROM pgmq.send_batch('jobs', ARRAY['1']::jsonb[], ARRAY['{}', '{}']::jsonb[])
    SELECT * FROM pgmq.send('nowhere', '1')
    SELECT queue_length, queue_visible_length, total_messages FROM pgmq.metrics('jobs')
    SELECT msg_id, read_ct, message, headers FROM pgmq.read('jobs', 600, 2)
    SELECT msg_id, read_ct, message, headers FROM pgmq.read('jobs', 600, 1, '{"n": 5}')
    SELECT msg_id, read_ct, message, headers FROM pgmq.read('jobs', 600, 1, '{"n": 99}')
    SELECT msg_id, read_ct, message, headers FROM pgmq.read('jobs', 600, 0)
    SELECT msg_id, read_ct, message, headers FROM pgmq.read_with_poll('jobs', 0, 1, 1, 10)
    SELECT msg_id, read_ct, message, headers FROM pgmq.read_with_poll('jobs', 0, 1, 1, 10)
    SELECT msg_id, read_ct FROM pgmq.set_vt('jobs', 1::bigint, 0)
    SELECT msg_id, read_ct FROM pgmq.set_vt('jobs', 99::bigint, 0)
    SELECT msg_id, read_ct FROM pgmq.set_vt('jobs', ARRAY[2, 5]::bigint[], now())
    SELECT msg_id, read_ct, vt FROM pgmq.set_vt('jobs', 3::bigint, '2040-01-01'::timestamptz)
    SELECT msg_id, read_ct FROM pgmq.read('jobs', 600, 1)
    SELECT pgmq.archive('jobs', 1::bigint)
    SELECT pgmq.archive('jobs', 1::bigint)
    SELECT * FROM pgmq.archive('jobs', ARRAY[1, 2, 99]::bigint[])
    SELECT pgmq.delete('jobs', 4::bigint)
    SELECT pgmq.delete('jobs', 4::bigint)
    SELECT * FROM pgmq.delete('jobs', ARRAY[4, 5]::bigint[])
    SELECT msg_id, read_ct, message, headers FROM pgmq.pop('jobs')
    SELECT msg_id, read_ct, message, headers FROM pgmq.pop('jobs', 2)
    SELECT msg_id, read_ct, message, headers FROM pgmq.q_jobs ORDER BY msg_id
    SELECT msg_id, read_ct, message, headers FROM pgmq.a_jobs ORDER BY msg_id
    SELECT queue_length, queue_visible_length, total_messages FROM pgmq.metrics('jobs')
    SELECT pgmq.purge_queue('jobs')
    SELECT queue_length, total_messages, newest_msg_age_sec FROM pgmq.metrics('jobs')
    SELECT pgmq.send('jobs', '"a1"', '{"x-pgmq-group": "a"}'::jsonb)
    SELECT pgmq.send('jobs', '"a2"', '{"x-pgmq-group": "a"}'::jsonb)
    SELECT pgmq.send('jobs', '"b1"', '{"x-pgmq-group": "b"}'::jsonb)
    SELECT pgmq.send('jobs', '"a3"', '{"x-pgmq-group": "a"}'::jsonb)
    SELECT pgmq.send('jobs', '"c1"', '{"x-pgmq-group": "c"}'::jsonb)
    SELECT pgmq.send('jobs', '"0"')
    SELECT pgmq.send('jobs', '"b2"', '{"x-pgmq-group": "b"}'::jsonb)
    SELECT message FROM pgmq.read_grouped('jobs', 600, 2)
    SELECT message FROM pgmq.read_grouped('jobs', 600, 2)
    SELECT message FROM pgmq.read_grouped('jobs', 600, 9)
    SELECT message FROM pgmq.read_grouped('jobs', 600, 9)
    SELECT count(*) FROM pgmq.set_vt('jobs', ARRAY(SELECT msg_id FROM pgmq.q_jobs), 0)
    SELECT message FROM pgmq.read_grouped_rr('jobs', 600, 5)
    SELECT message FROM pgmq.read_grouped_rr('jobs', 600, 5)
    SELECT count(*) FROM pgmq.set_vt('jobs', ARRAY(SELECT msg_id FROM pgmq.q_jobs), 0)
    SELECT message FROM pgmq.read_grouped_head('jobs', 600, 2)
    SELECT message FROM pgmq.read_grouped_head_with_poll('jobs', 600, 9, 1, 10)
    SELECT pgmq.create('other'), pgmq.create('other')
    SELECT queue_name, is_partitioned, is_unlogged FROM pgmq.list_queues() ORDER BY 1
    SELECT pgmq.bind_topic('logs.*', 'jobs'), pgmq.bind_topic('logs.*', 'jobs')
    SELECT pgmq.bind_topic('logs.#', 'other'), pgmq.bind_topic('#.fatal', 'other')
    SELECT pgmq.bind_topic('logs.*', 'nowhere')
    SELECT pgmq.bind_topic('logs.**', 'jobs')
    SELECT pattern, queue_name, compiled_regex FROM pgmq.list_topic_bindings() ORDER BY 1, 2
    SELECT pattern, queue_name FROM pgmq.list_topic_bindings('other') ORDER BY 1, 2
    SELECT * FROM pgmq.test_routing('logs.error')
    SELECT * FROM pgmq.test_routing('logs')
    SELECT * FROM pgmq.test_routing('app.fatal')
    SELECT pgmq.send_topic('logs.fatal', '{"t": 1}')
    SELECT pgmq.send_topic('logs.a.b', '{"t": 2}', 600)
    SELECT pgmq.send_topic('logs.a', '{"t": 3}', '{"h": 1}'::jsonb, 0)
    SELECT pgmq.send_topic('nobody', '{"t": 4}')
    SELECT pgmq.send_topic('logs.a', '{"t": 5}', -1)
    SELECT pgmq.send_topic('logs.a', NULL)
    SELECT pgmq.send_topic('logs..a', '1')
    SELECT queue_name FROM pgmq.send_batch_topic('logs.a', ARRAY['1', '2']::jsonb[])
    SELECT queue_name FROM pgmq.send_batch_topic('logs.a', '{1}'::jsonb[], '{"{}"}'::jsonb[], 5)
    SELECT pgmq.unbind_topic('logs.*', 'jobs'), pgmq.unbind_topic('logs.*', 'jobs')
    SELECT pgmq.validate_routing_key('a.b-c_d')
    SELECT pgmq.validate_routing_key('a.*')
    SELECT pgmq.validate_topic_pattern('a.*.#')
    SELECT pgmq.validate_topic_pattern('')
    SELECT pgmq.validate_queue_name(repeat('a', 48))
    SELECT pgmq.enable_notify_insert('jobs', 7), pgmq.enable_notify_insert('other')
    SELECT pgmq.enable_notify_insert('jobs', -7)
    SELECT pgmq.enable_notify_insert('nowhere')
    SELECT queue_name, throttle_interval_ms FROM pgmq.list_notify_insert_throttles()
    SELECT pgmq.update_notify_insert('jobs', 9)
    SELECT pgmq.disable_notify_insert('jobs')
    SELECT pgmq.update_notify_insert('jobs', 9)
    SELECT queue_name, throttle_interval_ms FROM pgmq.list_notify_insert_throttles()
    SELECT pgmq.create_fifo_index('jobs'), pgmq.create_fifo_indexes_all()
    SELECT pgmq.drop_queue('other')
    SELECT pgmq.drop_queue('other')
    SELECT queue_name FROM pgmq.list_queues()
    SELECT count(*) FROM pgmq.list_topic_bindings()
    SELECT queue_name, queue_length FROM pgmq.metrics_all()
    SELECT * FROM pgmq.metrics('other')
"""


async def answer(db: Any, call: str) -> Any:
    """What a call gives: its rows, or that it is refused, and by which kind of error."""
    try:
        rows = await db.fetch(call)
    except asyncpg.PostgresError as error:
        return error.sqlstate
    found = [tuple(row) for row in rows]
    # PGMQ does not say in which order one read gives its messages.
    return sorted(found, key=repr) if re.search(r"read_grouped\(|_head", call) else found


async def test_p1_pgmq_and_the_dialect_answer_alike(db: Any, original: Any, store: Store) -> None:
    for connection in (db, original):
        await connection.execute("SET search_path = public; SELECT pgmq.create('jobs')")
    different = []
    for call in map(str.strip, SCRIPT.strip().splitlines()):
        theirs, ours = await answer(original, call), await answer(db, call)
        if ours != theirs:
            different.append({"call": call, "pgmq": theirs, "windrow": ours})
    assert different == [], json.dumps(different, indent=1, default=str)
