"""Server-sent events as the client reads them."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from tocsin.client.incoming.live import count_told
from tocsin.client.transport.sse import POSITION, Message, StreamReader

TEXT = st.text(st.characters(blacklist_characters="\r\n", blacklist_categories=["Cs"]), max_size=20)
EVENT = st.tuples(st.integers(1, 10**9), TEXT)


def written(message: tuple[int, str] | str) -> bytes:
    if isinstance(message, str):
        return f":{message}\n\n".encode()
    return f"id: {message[0]}\ndata: {message[1]}\n\n".encode()


@given(
    sent=st.lists(st.one_of(EVENT, st.sampled_from(["", " a comment"])), max_size=12),
    cuts=st.lists(st.integers(0, 500), max_size=6),
)
def test_every_event_is_read_wherever_the_stream_is_cut(sent, cuts) -> None:
    stream = b"".join(map(written, sent))
    reader = StreamReader()
    got: list[Message] = []

    places = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    for start, end in itertools.pairwise(places):
        got += reader.feed(stream[start:end])

    wanted = [Message("", each[0], each[1].encode()) for each in sent if not isinstance(each, str)]
    assert got == wanted


def test_other_messages_keep_their_kind_and_their_place_among_events() -> None:
    got = StreamReader().feed(
        b"retry: 3000\n\nid: 7\n\nid: 8\ndata: {}\n\n"
        b'event: dropped\ndata: {"dropped":3}\n\nevent: bye\ndata: {"reason":"stopping"}\n\n'
    )

    assert [(message.kind, message.seq) for message in got] == [
        (POSITION, 7),
        ("", 8),
        ("dropped", 0),
        ("bye", 0),
    ]
    assert count_told(got[2].data, "dropped") == 3


def test_a_log_with_nothing_in_it_has_a_place_to_go_on_from() -> None:
    assert StreamReader().feed(b"retry: 3000\nid: 0\n\n") == [Message(POSITION, 0, b"")]


def test_data_that_speaks_of_events_is_not_mistaken_for_a_kind() -> None:
    assert StreamReader().feed(b'id: 1\ndata: {"a":"event: x"}\n\n') == [
        Message("", 1, b'{"a":"event: x"}')
    ]
