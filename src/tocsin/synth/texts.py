"""Texts by the million: columns of times, numbers and names, made without a loop over rows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Ints: TypeAlias = npt.NDArray[np.int64]
Bytes: TypeAlias = npt.NDArray[np.uint8]
Part: TypeAlias = Any  # an array of texts, or one text for all rows

MS_PER_DAY: Final = 86_400_000
MS_PER_S: Final = 1_000
_TIME_CHARS: Final = len("2026-01-01T00:00:00.000Z")
_HEX_CHARS: Final = 16


def join(*parts: Part) -> pa.StringArray:
    """The parts of each row, one after the other."""
    return pc.binary_join_element_wise(*parts, "")


def pool(texts: Sequence[str | None]) -> pa.StringArray:
    return pa.array(texts, pa.string())


def picked(texts: pa.StringArray, places: npt.NDArray[Any]) -> pa.StringArray:
    """One of the texts for each row."""
    return texts.take(pa.array(places))


def whole(numbers: Ints) -> pa.StringArray:
    return pa.array(numbers).cast(pa.string())


def decimal(numbers: Ints, places: int) -> tuple[pa.StringArray, pa.StringArray]:
    """Numbers in units of 10**-places: what stands before the point, and the rest with it.

    Without zeros at the end, so that who reads such a number and writes it again writes the same.
    """
    before, after = np.divmod(numbers, 10**places)
    return whole(before), picked(_fractions(places), after)


@lru_cache(maxsize=8)
def _fractions(places: int) -> pa.StringArray:
    texts = (f"{number:0{places}d}".rstrip("0") or "0" for number in range(10**places))
    return pool([f".{text}" for text in texts])


def times(moments_ms: Ints) -> pa.StringArray:
    """RFC 3339 in UTC, to the millisecond."""
    if not len(moments_ms):
        return pool([])
    days, in_day_ms = np.divmod(moments_ms, MS_PER_DAY)
    seconds, milliseconds = np.divmod(in_day_ms, MS_PER_S)
    first = int(days.min())
    dates = np.arange(first, int(days.max()) + 1).astype("datetime64[D]").astype("S10")
    texts = np.empty((len(moments_ms), _TIME_CHARS), np.uint8)
    texts[:, :10] = dates.view(np.uint8).reshape(-1, 10)[days - first]
    texts[:, 10:19] = _clock()[seconds]
    texts[:, 19:] = _thousandths()[milliseconds]
    return of_one_length(texts)


@lru_cache(maxsize=1)
def _clock() -> Bytes:
    of_day = range(MS_PER_DAY // MS_PER_S)
    texts = b"".join(b"T%02d:%02d:%02d" % (s // 3600, s // 60 % 60, s % 60) for s in of_day)
    return np.frombuffer(texts, np.uint8).reshape(-1, 9)


@lru_cache(maxsize=1)
def _thousandths() -> Bytes:
    texts = b"".join(b".%03dZ" % number for number in range(1_000))
    return np.frombuffer(texts, np.uint8).reshape(-1, 5)


def hexadecimal(numbers: npt.NDArray[np.uint64]) -> pa.StringArray:
    """Sixteen digits each."""
    texts = np.empty((len(numbers), _HEX_CHARS), np.uint8)
    for place in range(4):
        quarter = (numbers >> np.uint64(48 - 16 * place)) & np.uint64(0xFFFF)
        texts[:, 4 * place : 4 * place + 4] = _four_digits()[quarter]
    return of_one_length(texts)


@lru_cache(maxsize=1)
def _four_digits() -> Bytes:
    texts = b"".join(b"%04x" % number for number in range(1 << 16))
    return np.frombuffer(texts, np.uint8).reshape(-1, 4)


def mixed(numbers: Ints, salt: int) -> npt.NDArray[np.uint64]:
    """Another number for each, never the same for two: the mixing step of splitmix64."""
    begin = np.uint64(salt * 0x9E3779B97F4A7C15 % (1 << 64))
    bits = numbers.astype(np.uint64) + begin
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


def of_one_length(texts: Bytes) -> pa.StringArray:
    """A column of texts that all have as many bytes as the matrix has columns."""
    count, chars = texts.shape
    offsets = np.arange(count + 1, dtype=np.int32) * np.int32(chars)
    return pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(texts))
