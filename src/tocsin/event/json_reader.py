"""JSON from strangers, read in a time that its length bounds.

msgspec needs up to 20 microseconds for a number with a large exponent: 16 MB of `1e300` would stop
the broker for most of a minute. So where many numbers have one, Python's own reader reads them.
"""

from __future__ import annotations

import json
from typing import Any, Final, NoReturn

import msgspec

EXPONENTS_MAX: Final = 20  # that msgspec reads

_DIGITS_ALIKE: Final = bytes.maketrans(b"123456789E", b"000000000e")

_decode = msgspec.json.Decoder().decode


def read_json(data: bytes) -> Any:
    """The value. Raises msgspec.DecodeError, UnicodeDecodeError or RecursionError."""
    if data.translate(_DIGITS_ALIKE).count(b"0e") <= EXPONENTS_MAX:
        return _decode(data)
    try:
        return json.loads(data.decode(), parse_float=_finite, parse_constant=_refused)
    except UnicodeDecodeError:
        raise
    except ValueError as error:
        raise msgspec.DecodeError(str(error)) from None


def _finite(digits: str) -> float:
    value = float(digits)
    if value in (float("inf"), float("-inf")):
        raise ValueError("Number out of range")
    return value


def _refused(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")
