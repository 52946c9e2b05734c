"""JSON is read in a time that its length bounds."""

from __future__ import annotations

import json
from time import process_time

import msgspec
import pytest

from tocsin.event.event import Event, content
from tocsin.event.json_reader import EXPONENTS_MAX, read_json
from tocsin.monitor.values import names, objects
from tocsin.wire.api.members import read_object
from tocsin.wire.cloudevents import typed
from tocsin.wire.engines.checked_values import read_json as read_engine_json

SLOW = ",".join(["1e300"] * 400_000)


def test_a_body_of_large_exponents_does_not_stop_the_broker() -> None:
    """It took 8 s; a body may be seven times as long."""
    began = process_time()

    read_engine_json(f'{{"runName": "r", "values": [{SLOW}]}}'.encode())
    read_object(f'{{"values": [{SLOW}]}}'.encode())

    assert process_time() - began < 3


def test_an_event_of_large_exponents_does_not_stop_the_matching() -> None:
    small = Event("1", "/s", "t", data=f'{{"n": [{SLOW[:7_990]}0]}}'.encode())
    members = ",".join(f'"a{number}": 1e300' for number in range(70_000))
    large = Event("1", "/s", "t", data=f'{{{members}, "q": {{"v": [{SLOW[:120_000]}0]}}}}'.encode())
    began = process_time()

    for _ in range(20):
        content(small)
    seen = content(large)

    assert process_time() - began < 1
    assert seen["a0"] == 1e300


def test_typed_attributes_and_values_of_a_run_do_not_either() -> None:
    members = ",".join(f'"a{number}": 1e300' for number in range(60_000))
    began = process_time()

    typed.read(f"{{{members}}}", None)
    assert objects(f'[{{"n": [{SLOW[:300_000]}0]}}]')
    assert names(f"[{SLOW[:300_000]}0]")

    assert process_time() - began < 1


MANY = [1e300] * (EXPONENTS_MAX + 1)


@pytest.mark.parametrize("value", [{"a": MANY, "b": "é", "c": [1, -2.5, None, True]}, MANY])
def test_both_readers_read_the_same(value: object) -> None:
    assert read_json(json.dumps(value).encode()) == value


@pytest.mark.parametrize("wrong", ["NaN", "Infinity", "1e999", "-1e999", "[", "01", "1.", "'a'"])
def test_both_readers_refuse_the_same(wrong: str) -> None:
    many = json.dumps(MANY)[1:-1]

    with pytest.raises(msgspec.DecodeError):
        read_json(f"[{wrong}]".encode())
    with pytest.raises(msgspec.DecodeError):
        read_json(f"[{many},{wrong}]".encode())
    with pytest.raises((msgspec.DecodeError, UnicodeDecodeError)):
        read_json(f'[{many},"'.encode() + b'\xff"]')
