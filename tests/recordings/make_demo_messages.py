"""Makes the messages that `tocsin demo` publishes from what Snakemake logged.

    python tests/recordings/make_demo_messages.py RECORDING... --out FILE.jsonl.gz

src/tocsin/cli/demo/recordings/README.md says what the recordings are.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from tocsin.integrations.files import NoFiles
from tocsin.integrations.snakemake.records import SnakemakeRun
from tocsin.wire.blackboard.messages import Message

REPEATED = "ev_*.jsonl"  # runs of one workflow, which were each in a directory of their own
REPEATED_NAME = "samples"
# Where and by whom they were recorded is of no interest.
NEUTRAL = (("/srv/flows/env_snakemake/bin/", ""), ("/srv/flows/", "/data/flows/"))
NEUTRAL_NAMES = {"Host": "node1", "UserName": "ada"}

_GENERATES = re.compile(r"random\.Random\((\d+)\).* in range\((\d+)\)\]\" > d/(\S+)")


class Generated(NoFiles):
    """The sizes of files whose content the logged command settles, though they are gone.

    `gen` prints so many numbers of a seeded generator; `sort` puts the same lines in order.
    """

    def __init__(self, commands: Iterable[str]) -> None:
        self._lines: dict[str, tuple[int, int]] = {}
        for command in commands:
            found = _GENERATES.search(command)
            if found is not None:
                self._lines[found[3]] = int(found[1]), int(found[2])

    def size(self, path: str) -> int | None:
        folder, _, name = path.partition("/")
        if folder not in ("d", "s") or name not in self._lines:
            return None
        seed, lines = self._lines[name]
        return printed_bytes(seed, lines)


_printed: dict[tuple[int, int], int] = {}


def printed_bytes(seed: int, lines: int) -> int:
    """What `gen` writes for this seed."""
    if (seed, lines) not in _printed:
        bits = random.Random(seed).getrandbits
        _printed[seed, lines] = sum(len(str(bits(256))) + 1 for _ in range(lines))
    return _printed[seed, lines]


def messages_of(recording: Path) -> list[Message]:
    """What the adapter for Snakemake tells of one recorded run."""
    records: list[dict[str, Any]] = [json.loads(line) for line in recording.open()]
    files = Generated(str(each.get("shellcmd") or "") for each in records)
    name = REPEATED_NAME if recording.match(REPEATED) else None
    run = SnakemakeRun(files_in=lambda directory: files, name=name)
    found: list[Message] = []
    at_s = 0.0
    for record in records:
        at_s = record.get("ts", at_s)
        if record["event"] != "HANDLER_CLOSE":
            found += run.handle({**record, "created": at_s})
    return [_neutral(each) for each in found + run.closed(at_s)]


def _neutral(message: Message) -> Message:
    pairs = {}
    for concept, text in message.pairs.items():
        for place, other in NEUTRAL:
            text = text.replace(place, other)
        pairs[concept] = NEUTRAL_NAMES.get(concept, text)
    return msgspec.structs.replace(message, pairs=pairs)


def all_messages(recordings: Iterable[Path]) -> list[Message]:
    """The messages of all runs, in the order of their times."""
    found = [each for recording in sorted(recordings) for each in messages_of(recording)]
    return sorted(found, key=lambda each: each.time or "")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("recordings", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args(arguments)
    lines = b"\n".join(map(msgspec.json.encode, all_messages(asked.recordings))) + b"\n"
    asked.out.write_bytes(gzip.compress(lines, mtime=0))


if __name__ == "__main__":
    main()
