"""Texts by the million: columns of times, numbers and names, built without a loop over rows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Ints: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]
Flags: TypeAlias = npt.NDArray[np.bool_]
Bytes: TypeAlias = npt.NDArray[np.uint8]
Part: TypeAlias = Any  # an array of texts, or one text for all rows

MS_PER_DAY: Final = 86_400_000


def join(*parts: Part) -> pa.StringArray:
    """The parts of each row, concatenated."""
    return pc.binary_join_element_wise(*parts, "")


def pick(texts: Sequence[str | None], places: npt.NDArray[Any]) -> pa.StringArray:
    """One of the texts for each row."""
    return pa.array(texts, pa.string()).take(pa.array(places))


def whole(numbers: Ints) -> pa.StringArray:
    return pa.array(numbers).cast(pa.string())


def decimal(numbers: Ints, places: int) -> pa.StringArray:
    """Numbers in units of 10**-places, without trailing zeros: parsing and printing is stable."""
    before, after = np.divmod(numbers, 10**places)
    return join(whole(before), _fractions(places).take(pa.array(after)))


@lru_cache(maxsize=8)
def _fractions(places: int) -> pa.StringArray:
    texts = (f"{number:0{places}d}".rstrip("0") or "0" for number in range(10**places))
    return pa.array([f".{text}" for text in texts], pa.string())


def times(moments_ms: Ints) -> pa.StringArray:
    """RFC 3339 in UTC, to the millisecond."""
    if not len(moments_ms):
        return pa.array([], pa.string())
    days, in_day_ms = np.divmod(moments_ms, MS_PER_DAY)
    seconds, milliseconds = np.divmod(in_day_ms, 1_000)
    first = int(days.min())
    dates = np.arange(first, int(days.max()) + 1).astype("datetime64[D]").astype("S10")
    return _of_one_length(
        dates.view(np.uint8).reshape(-1, 10)[days - first],
        _table(b"T%02d", 24)[seconds // 3_600],
        _table(b":%02d", 60)[seconds // 60 % 60],
        _table(b":%02d", 60)[seconds % 60],
        _table(b".%03dZ", 1_000)[milliseconds],
    )


def hexadecimal(numbers: npt.NDArray[np.uint64]) -> pa.StringArray:
    """Sixteen digits each."""
    quarters = ((numbers >> np.uint64(bits)) & np.uint64(0xFFFF) for bits in (48, 32, 16, 0))
    return _of_one_length(*(_table(b"%04x", 1 << 16)[each] for each in quarters))


def mix(numbers: Ints, salt: int) -> npt.NDArray[np.uint64]:
    """A different number for each: the mixing step of splitmix64, which is a bijection."""
    bits = numbers.astype(np.uint64) + np.uint64(salt * 0x9E3779B97F4A7C15 % (1 << 64))
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


@lru_cache(maxsize=8)
def _table(template: bytes, count: int) -> Bytes:
    """The first numbers in a format of fixed width, one per row."""
    texts = b"".join(template % number for number in range(count))
    return np.frombuffer(texts, np.uint8).reshape(count, -1)


def _of_one_length(*parts: Bytes) -> pa.StringArray:
    """A column of texts that all have as many bytes as the matrices have columns."""
    texts = np.concatenate(parts, axis=1)
    count, chars = texts.shape
    offsets = np.arange(count + 1, dtype=np.int32) * np.int32(chars)
    return pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(texts))
