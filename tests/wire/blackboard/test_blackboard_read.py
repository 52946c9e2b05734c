"""Reading messages of the blackboard: a name that comes twice is refused, wherever it is."""

from __future__ import annotations

import pytest

from tocsin.errors import BadRequest
from tocsin.ontology import built_in
from tocsin.wire.blackboard.read import read_messages

FINE = b'{"id":"1","source":"/s","time":"2026-11-18T10:00:00Z","pairs":{"EventData":"x"}}'


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"id":"1"', b'"id":"1","id":"1"'),
        (b'"id":"1"', b'"id":"","id":""'),
        (b'"EventData":"x"', b'"EventData":"x","EventData":"y"'),
        (b'"EventData":"x"', b'"EventData":"x","Event\\u0044ata":"y"'),
        (b'"pairs"', b'"pairs":{},"pairs"'),
    ],
)
@pytest.mark.parametrize("before", [0, 1, 63])
def test_a_name_twice_is_refused(old: bytes, new: bytes, before: int) -> None:
    body = b"[%b]" % b",".join([FINE] * before + [FINE.replace(old, new)])

    with pytest.raises(BadRequest, match="comes twice"):
        read_messages(body, built_in(), 100)


def test_the_same_names_in_many_messages_and_escaped_quotes_are_read() -> None:
    quoted = FINE.replace(b'"x"', b'"\\"x\\\\"')

    messages = read_messages(b"[%b,%b,%b]" % (FINE, quoted, FINE), built_in(), 100)

    assert [each.pairs["EventData"] for each in messages] == ["x", '"x\\', "x"]
