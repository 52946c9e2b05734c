"""The end of the log in memory says the same as the log, or nothing."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tocsin.broker.recent import events as module
from tocsin.broker.recent.events import Recent
from tocsin.event.event import Event
from tocsin.event.stored import Stored


def stored(seq: int, size: int = 0) -> Stored:
    return Stored(seq, seq, Event(str(seq), "/s", "t", data=b"x" * size))


@given(
    sizes=st.lists(st.integers(1, 5), max_size=30),
    after=st.integers(-2, 120),
    limit=st.integers(1, 20),
)
def test_a_page_is_the_logs_own_or_none(sizes: list[int], after: int, limit: int) -> None:
    recent, log = Recent(), [stored(seq) for seq in range(1, sum(sizes) + 1)]
    start = 0
    for size in sizes:
        recent.add(log[start : start + size], size)
        start += size

    page = recent.page(after, limit)

    wanted = [entry for entry in log if entry.seq > after][:limit]
    assert page is None or page == wanted
    if after >= 0 and wanted:
        assert page is not None


def test_only_the_end_is_kept_by_count_and_by_bytes() -> None:
    many = Recent()
    for start in range(1, module.EVENTS_MAX * 3, 1000):
        many.add([stored(seq) for seq in range(start, start + 1000)], 1000)
    assert many.page(1, 10) is None

    large = Recent()
    size = module.BYTES_MAX // 4
    for seq in range(1, 12):
        large.add([stored(seq, size)], size)
    assert large.page(1, 10) is None
    assert large.page(10, 10) == [stored(11, size)]
