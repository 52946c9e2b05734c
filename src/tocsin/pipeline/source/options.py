"""Options: what a reader of the source `tocsin` asked for, checked once, and plain to pickle."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Self

import pyarrow as pa

from tocsin.archive.record import SCHEMA
from tocsin.archive.selection import NoSuchColumn, select
from tocsin.credentials.lookup import (
    CLIENT_CERT_VARIABLE,
    CLIENT_KEY_VARIABLE,
    TOKEN_FILE_VARIABLE,
    TOKEN_VARIABLE,
)
from tocsin.errors.spark import BadSourceOption
from tocsin.pipeline.locations import has_password

WHOLE_MAX: Final = 2**63 - 1
# Spark itself cuts files at 128 MiB, which is about a million archived events.
ROWS_PER_PARTITION: Final = 500_000
# Decoded, a batch of this size is some tens of megabytes in the worker and again in the JVM.
ROWS_PER_BATCH: Final = 8_192
ROWS_PER_BATCH_MAX: Final = 1_000_000
# The first trigger on an old archive must not be all of it.
ROWS_PER_TRIGGER: Final = 2_000_000
TIMEOUT_S: Final = 60  # a broker that is busy answers within seconds
TIMEOUT_S_MAX: Final = 3_600
RETRIES: Final = 6  # with doubling waits about half a minute: a restart of the broker
RETRIES_MAX: Final = 100
CA_FILE_VARIABLE: Final = "TOCSIN_CA_FILE"  # as the client has it

KNOWN: Final = (
    "path",
    "after",
    "through",
    "columns",
    "rows_per_partition",
    "rows_per_batch",
    "rows_per_trigger",
    "bad_files",
    "holes",
    "nulls",
    "ca_file",
    "token_file",
    "client_cert",
    "client_key",
    "timeout_s",
    "retries",
)
_SECRETS: Final = ("token", "password", "bearer", "authorization")
# `rowsPerBatch`, `rows_per_batch` and `ROWSPERBATCH` are one: Spark forgets the case.
_BY_KEY: Final = {name.replace("_", ""): name for name in KNOWN}


@dataclass(frozen=True, slots=True)
class Options:
    """Where the events are, which of them are wanted, and in what portions."""

    path: str
    after: int | None  # None, and 0: from the first there is
    through: int | None  # None: to the last there is
    columns: tuple[str, ...]  # (): all
    rows_per_partition: int = ROWS_PER_PARTITION
    rows_per_batch: int = ROWS_PER_BATCH
    rows_per_trigger: int = ROWS_PER_TRIGGER
    skips_bad_files: bool = False
    skips_holes: bool = False
    keeps_nulls: bool = False
    ca_file: str = ""
    # Files, and never what is in them: options are shown in plans, and sent to executors.
    token_file: str = ""
    client_cert: str = ""
    client_key: str = ""
    timeout_s: int = TIMEOUT_S
    retries: int = RETRIES

    @classmethod
    def parse(cls, given: Mapping[str, str]) -> Self:
        """Raises BadSourceOption, which names the option and what it can be."""
        texts = _named(given)
        path = texts.get("path", "")
        if not path:
            raise BadSourceOption(
                "the source tocsin needs to know where the events are",
                remedy="Give a directory or a broker's address: .load('http://127.0.0.1:8400').",
            )
        if has_password(path):
            raise BadSourceOption(
                "the address of the broker has a user or a password in it",
                remedy="Leave it out, and name a file with a token: option token_file.",
            )
        after = _whole(texts, "after", 0, WHOLE_MAX) or None
        through = _whole(texts, "through", 0, WHOLE_MAX)
        if after is not None and through is not None and through < after:
            raise BadSourceOption(
                f"through is {through}, before after, which is {after}",
                remedy="Events in (after, through] are read.",
            )
        columns = tuple(
            each.strip() for each in texts.get("columns", "").split(",") if each.strip()
        )
        _selected(columns)
        return cls(
            path=path,
            after=after,
            through=through,
            columns=columns,
            rows_per_partition=_whole(texts, "rows_per_partition", 1, WHOLE_MAX)
            or ROWS_PER_PARTITION,
            rows_per_batch=_whole(texts, "rows_per_batch", 1, ROWS_PER_BATCH_MAX) or ROWS_PER_BATCH,
            rows_per_trigger=_whole(texts, "rows_per_trigger", 1, WHOLE_MAX) or ROWS_PER_TRIGGER,
            skips_bad_files=_choice(texts, "bad_files", "fail", "skip") == "skip",
            skips_holes=_choice(texts, "holes", "fail", "skip") == "skip",
            keeps_nulls=_choice(texts, "nulls", "fail", "keep") == "keep",
            ca_file=texts.get("ca_file") or os.environ.get(CA_FILE_VARIABLE, ""),
            token_file=texts.get("token_file") or _token_file_of(os.environ),
            client_cert=texts.get("client_cert") or os.environ.get(CLIENT_CERT_VARIABLE, ""),
            client_key=texts.get("client_key") or os.environ.get(CLIENT_KEY_VARIABLE, ""),
            timeout_s=_whole(texts, "timeout_s", 1, TIMEOUT_S_MAX) or TIMEOUT_S,
            retries=RETRIES if (n := _whole(texts, "retries", 0, RETRIES_MAX)) is None else n,
        )

    @property
    def is_broker(self) -> bool:
        return self.path.startswith(("http://", "https://"))

    def schema(self) -> pa.Schema:
        """The columns that are wanted, as the archive types them."""
        wanted = _selected(self.columns)
        if not self.keeps_nulls:
            return wanted
        return pa.schema([field.with_nullable(True) for field in wanted], wanted.metadata)


def _token_file_of(environment: Mapping[str, str]) -> str:
    """The driver's, for executors that have it at the same place and not in their environment."""
    return "" if environment.get(TOKEN_VARIABLE) else environment.get(TOKEN_FILE_VARIABLE, "")


def _selected(columns: tuple[str, ...]) -> pa.Schema:
    if not columns:
        return SCHEMA
    try:
        return select(columns)
    except NoSuchColumn as error:
        raise BadSourceOption(
            f"columns: {error}",
            remedy="Separate them by commas, and name members of facts as facts.ExitCode.",
        ) from None


def _named(given: Mapping[str, str]) -> dict[str, str]:
    texts: dict[str, str] = {}
    for key, value in given.items():
        if key.lower() == "paths":
            raise BadSourceOption(
                "the source tocsin reads one place at a time",
                remedy="Load each, and put the frames together with union.",
            )
        name = _BY_KEY.get(key.lower().replace("_", ""))
        if key.lower() in _SECRETS:
            raise BadSourceOption(
                f"the option {key} would show the token in plans and in Spark's user interface",
                remedy="Write it to a file that every executor can read, and name that: option "
                "token_file.",
            )
        if name is None:
            near = difflib.get_close_matches(key.lower(), KNOWN, n=1)
            raise BadSourceOption(
                f"the source tocsin has no option {key!r}",
                remedy=f"Did you mean {near[0]}?" if near else f"It has: {', '.join(KNOWN)}.",
            )
        texts[name] = str(value).strip()
    return texts


def _whole(texts: Mapping[str, str], name: str, least: int, most: int) -> int | None:
    text = texts.get(name)
    if text is None:
        return None
    number = int(text) if text.isascii() and text.isdigit() else -1
    if not least <= number <= most:
        raise BadSourceOption(
            f"{name} is {text[:60]!r}", remedy=f"Give a whole number, from {least} to {most}."
        )
    return number


def _choice(texts: Mapping[str, str], name: str, *choices: str) -> str:
    text = texts.get(name, choices[0]).lower()
    if text not in choices:
        raise BadSourceOption(
            f"{name} is {text[:60]!r}", remedy=f"Choose one of {', '.join(choices)}."
        )
    return text
