"""The attempts of activities: how what was folded becomes columns that can be searched."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import msgspec

from tocsin.drivers.monitor.database.damage import DamagedRow
from tocsin.monitor.anomalies import of_attempt
from tocsin.monitor.fold import Row, latest
from tocsin.monitor.rules import PEAKS, RESOURCE, SUMMED
from tocsin.monitor.states import attempt_times, fault_of

# Of one activity: all of them are read with every event of it, which takes some 5 ms.
ATTEMPTS_MAX: Final = 200

encode = msgspec.msgpack.Encoder().encode
_decode_row = msgspec.msgpack.Decoder(dict[str, Any]).decode
_decode_message = msgspec.msgpack.Decoder(tuple[str | None, dict[str, str]]).decode


def decode_row(packed: bytes) -> Row:
    try:
        return _decode_row(packed)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DamagedRow(f"a row cannot be read: {error}") from error


def decode_message(packed: bytes) -> tuple[str | None, dict[str, str]]:
    """A message as it is kept: its time, and its pairs."""
    try:
        return _decode_message(packed)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DamagedRow(f"a message cannot be read: {error}") from error


@dataclass(slots=True)
class Attempt:
    """An attempt as it is on disk, and as it becomes."""

    row: Row
    no: int | None = None
    last: bool = False
    state: str = ""
    type: str = ""
    odd: int = 0
    touched: bool = False


def state_of(attempts: dict[int, Attempt]) -> tuple[str, str] | None:
    """What an activity counts as: its type, and the state of its last attempt."""
    if not attempts:
        return None
    last = attempts[max(attempts)]
    return (last.type, last.state) if last.state else None


def take_excess(attempts: dict[int, Attempt]) -> list[Attempt]:
    """Take out the attempts that are too many: all but the first, which has the plan, and the last.

    Whatever the order in which they come, the same ones stay.
    """
    numbers = sorted(attempts)
    return [attempts.pop(each) for each in numbers[1 : 1 - ATTEMPTS_MAX]]


def count(tally: dict[tuple[str, str], int], state: tuple[str, str] | None, by: int) -> None:
    if state is not None:
        tally[state] = tally.get(state, 0) + by


def use(used: dict[str, float], row: Row, sign: int) -> None:
    """Add what an attempt used to that of its run; of peaks, the greatest counts."""
    for name, cell in row.items():
        if name.startswith(RESOURCE):
            concept = name.removeprefix(RESOURCE)
            if concept in SUMMED:
                used[concept] = used.get(concept, 0.0) + sign * cell
            elif concept in PEAKS:
                used[concept] = max(used.get(concept, cell), cell)


def settle(
    run_no: int,
    name: str,
    attempts: dict[int, Attempt],
    added: list[tuple[Any, ...]],
    changed: list[tuple[Any, ...]],
) -> int:
    """Work out the columns of the attempts that are not as they are on disk.

    Returns by how much the number of anomalies has grown.
    """
    more_odd = 0
    last_number = max(attempts)
    kind = _latest_type(attempts)
    for number, attempt in attempts.items():
        is_last = number == last_number
        if not attempt.touched and attempt.last == is_last and attempt.type == kind:
            continue
        row = attempt.row
        times = attempt_times(row)
        odd = len(of_attempt(row, times, name))
        more_odd += odd - attempt.odd
        attempt.odd, attempt.state, attempt.type, attempt.last = odd, times.state, kind, is_last
        fault = fault_of(row, kind) if times.state in ("failed", "retrying") else None
        version = latest(row, "version") or ""
        columns = (times.state, kind, version, times.ended_ns, times.duration_s, fault, odd)
        if attempt.no is None:
            added.append((run_no, name, number, is_last, *columns, encode(row)))
        else:
            changed.append((is_last, *columns, encode(row), attempt.no))
    return more_odd


def _latest_type(attempts: dict[int, Attempt]) -> str:
    """The type that was reported last; all attempts of an activity are of one type."""
    cells = [cell for attempt in attempts.values() if (cell := attempt.row.get("type"))]
    return str(max(cells)[2]) if cells else ""
