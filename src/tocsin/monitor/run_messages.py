"""Which events are about runs, and what they say in concepts.

The live monitor and the archive both read events here, so that they agree.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

import msgspec

from tocsin.event.event import Event
from tocsin.event.instant import NS_PER_US
from tocsin.event.stored import Stored
from tocsin.monitor.alerts.messages import SOURCE
from tocsin.monitor.fold import RunMessage
from tocsin.monitor.values import NAME_CHARS_MAX
from tocsin.ontology import Vocabulary
from tocsin.wire.blackboard.normal import TYPE_PREFIX, pairs_of

_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_read_pairs = msgspec.json.Decoder(dict[str, str]).decode


class BadRunId(ValueError):
    """The RunId of a message is too long or not printable."""


def run_message(stored: Stored, vocabulary: Vocabulary) -> RunMessage | None:
    """What the event says in concepts, if it may be about a run or a workflow's version.

    Raises BadRunId.
    """
    event = stored.event
    if not mentions_runs(event):
        return None
    pairs = _pairs(event, vocabulary)
    run_id = pairs.get("RunId")
    if run_id is None and "WorkflowName" not in pairs:
        return None
    if run_id and not is_valid_run_id(run_id):
        raise BadRunId(f"RunId is too long or not printable: {run_id[:80]!r}")
    # To the microsecond, as the archive keeps it: what is folded from there must be the same.
    received_ns = stored.received_ns // NS_PER_US * NS_PER_US
    is_derived = event.source == SOURCE
    return RunMessage(pairs, stored.seq, received_ns, event.time, is_derived, event.topic)


def mentions_runs(event: Event) -> bool:
    """False if the event cannot be about a run; a quick check that parses nothing."""
    data = event.data
    if data and (b"RunId" in data or b"WorkflowName" in data):
        return True
    return "RunId" in event.attributes or "RunId" in event.extensions


@lru_cache(maxsize=1_024)  # messages of a few runs come one after another
def is_valid_run_id(run_id: str) -> bool:
    """False for an id that is too long or has a control character: it goes into URLs and tables."""
    return len(run_id) <= NAME_CHARS_MAX and not _CONTROL.search(run_id)


def _pairs(event: Event, vocabulary: Vocabulary) -> dict[str, str]:
    if event.type.startswith(TYPE_PREFIX) and not event.attributes and event.data:
        try:
            known = vocabulary.concepts
            pairs = _read_pairs(event.data)
            if pairs.keys() <= known.keys():  # nearly always, and asked in one go
                return pairs
            return {name: text for name, text in pairs.items() if name in known}
        except (msgspec.DecodeError, UnicodeDecodeError):
            pass  # values that are no texts
    return pairs_of(event, vocabulary)
