from __future__ import annotations

import os
import threading
import uuid

from windrow.ids import are_plain_ids, is_id, named_id, new_id, new_ids, owner_id


def test_ids_are_version_7_and_sort_in_the_order_they_were_made() -> None:
    made = [new_id() for _ in range(10_000)]
    assert made == sorted(made)
    assert len(set(made)) == len(made)
    assert {uuid.UUID(one).version for one in made} == {7}
    assert {uuid.UUID(one).variant for one in made} == {uuid.RFC_4122}


def test_threads_never_make_the_same_id() -> None:
    made: list[str] = []
    threads = [
        threading.Thread(target=lambda: made.extend(new_id() for _ in range(2_000)))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(made)) == 16_000


def test_a_forked_child_does_not_share_its_parents_random_bits() -> None:
    new_id()  # there is a pool to inherit
    read, write = os.pipe()
    if (child := os.fork()) == 0:
        os.write(write, new_id()[-17:].encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read, 100).decode() != new_id()[-17:]


def test_ids_by_name_are_those_of_the_standard() -> None:
    for within in (new_id(), new_id().upper(), new_id().replace("-", "")):
        for name in ("", "7", "équipe"):
            assert named_id(within, name) == str(uuid.uuid5(uuid.UUID(within), name))


def test_n9_owner_ids_are_kept_if_uuids_and_hashed_otherwise() -> None:
    given = "6F9619FF-8B86-D011-B42D-00CF4FC964FF"
    assert owner_id(given) == given.lower()
    assert owner_id("00000000-0000-0000-0000-000000000000") == str(uuid.UUID(int=0))
    namespace = uuid.UUID("0f38e00e-d7ee-4b77-8a7a-a787a3537ca2")
    assert owner_id("bypass") == str(uuid.uuid5(namespace, "bypass"))
    assert is_id(owner_id("équipe 7"))


def test_what_only_looks_like_an_id_is_none() -> None:
    plain = new_id()
    usual = [plain, plain.upper(), plain.replace("-", ""), f"{{{plain}}}", f"urn:uuid:{plain}"]
    odd = ["", plain[:-1], f"{plain[:-1]} ", f"{plain[:-2]}_1", f"\u0661{plain[1:]}", "-" * 36]

    assert [is_id(text) for text in usual] == [True] * len(usual)
    assert [is_id(text) for text in odd] == [False] * len(odd)
    assert are_plain_ids([])
    assert are_plain_ids(new_ids(100))
    for text in (*usual[2:], *odd, f"{plain[:7]}-{plain[7]}{plain[9:]}"):
        assert not are_plain_ids([plain, text, plain]), text
    assert not are_plain_ids([plain + plain[:1], plain[1:]])  # not even if they are right together
