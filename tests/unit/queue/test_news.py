"""What goes through a broker, and by which keys."""

from __future__ import annotations

from windrow.queue.bells import Wish, any_event, end_of, work_in
from windrow.queue.rabbitmq import news
from windrow.queue.rabbitmq.news import Letter, News, keys_of, work_key
from windrow.queue.rabbitmq.notifier import parse_address


def test_what_is_said_twice_is_told_once() -> None:
    told = News()
    told.add(["a", "b"], ["1"])
    told.add(["b", "a"], ["1", "2"])
    assert list(told.take("me")) == [Letter("me", ("a", "b"), ("1", "2"))]
    assert not told
    assert list(told.take("me")) == []


def test_much_news_goes_in_several_letters_and_nothing_twice() -> None:
    told = News()
    queues = [f"q{n}" for n in range(news.MOST_TOLD + 10)]
    ids = [str(n) for n in range(2 * news.MOST_TOLD)]
    told.add(queues, ids)
    letters = list(told.take("me"))
    assert len(letters) == 4
    assert [name for letter in letters for name in letter.queues] == queues
    assert [job_id for letter in letters for job_id in letter.job_ids] == ids
    assert max(len(letter.queues) + len(letter.job_ids) for letter in letters) == news.MOST_TOLD


def test_what_is_kept_for_a_broker_that_is_away_is_bounded() -> None:
    told = News()
    told.add([], map(str, range(2 * news.MOST_KEPT)))
    assert sum(len(letter.job_ids) for letter in told.take("me")) == news.MOST_KEPT


def test_a_letter_reaches_all_who_wish_for_something_in_it() -> None:
    keys = set(Letter("me", ("a", "b"), ("1",)).keys())
    for wish in (work_in(None), work_in(["b", "c"]), end_of(["1"]), end_of([*map(str, range(99))])):
        assert keys & keys_of(wish), wish
    for wish in (work_in(["c"]), end_of(["2"]), Wish()):
        assert not keys & keys_of(wish), wish
    assert not set(Letter("me", (), ("1",)).keys()) & keys_of(work_in(None))
    for letter in (Letter("me", ("a",)), Letter("me", (), ("1",))):
        assert set(letter.keys()) & keys_of(any_event())


def test_names_make_keys_that_fit_and_differ() -> None:
    names = ["end", "#", "a.b", "日" * 255, "日" * 254, "x" * 255]
    keys = [work_key(name) for name in names]
    assert len(set(keys)) == len(names)
    assert max(len(key.encode()) for key in keys) <= news.LONGEST_KEY


def test_the_exchange_is_named_in_the_address_and_not_sent_to_the_broker() -> None:
    assert parse_address("amqp://u:p@host/v") == ("amqp://u:p@host/v", "windrow")
    assert parse_address("amqps://host/?heartbeat=5&exchange=jobs") == (
        "amqps://host/?heartbeat=5",
        "jobs",
    )
