"""Messages: what a broker and the process that fills its archive say to each other, as lines."""

from __future__ import annotations

from typing import Any, Final

import msgspec


class WriterOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What the filling process is started for."""

    store: str
    """The setting `log.store`: which store the log is in."""
    log: str
    """The data directory."""
    directory: str
    ontology: tuple[str, ...] = ()
    seal_bytes: int
    seal_age_s: float
    retain_age_s: float
    retain_bytes: int
    free_bytes_min: int


class Roll(msgspec.Struct, frozen=True, tag="roll"):
    """Take the log up to `through` into the archive, and seal and let go of what is due."""

    through: int
    by_age: bool = False
    """Whether it is time to let go by age as well."""


class Samples(msgspec.Struct, frozen=True, tag="samples"):
    """Keep these rows beside the events. `kind` is the directory's name. Not answered."""

    kind: str
    rows: list[dict[str, Any]]


class Rolled(msgspec.Struct, frozen=True, tag="rolled", kw_only=True):
    """Done, or so far done: ask again while `through` is not what was asked for."""

    through: int
    files: int
    fresh: int
    """Fresh files that wait to be sealed."""
    superseded: int
    """Fresh files that were sealed, and wait to be removed."""
    size_bytes: int
    left_out: int = 0
    """Events that files cover and do not have: the log could not give them, or they could not be
    written down."""
    damaged: tuple[str, ...] = ()
    """Fresh files that were taken from the log again; set aside, if it no longer had all of it."""
    unread: tuple[str, ...] = ()
    """Fresh files that the machine does not read: they wait, and are tried again."""
    unsaved: str | None = None
    """Why samples could not be written, if they could not."""


class Failed(msgspec.Struct, frozen=True, tag="failed"):
    """Not done. `is_final` if it makes no sense to ask again."""

    code: str
    problem: str
    remedy: str
    is_final: bool = False


LINE_BYTES_MAX: Final = 16 << 20  # of one message: samples come in parts, see SAMPLE_ROWS_MAX
SAMPLE_ROWS_MAX: Final = 2_000

encode = msgspec.json.Encoder().encode
read_options = msgspec.json.Decoder(WriterOptions).decode
read_task = msgspec.json.Decoder(Roll | Samples).decode
read_answer = msgspec.json.Decoder(Rolled | Failed).decode
