"""Stampede events, and what they come to."""

from __future__ import annotations

import json
from typing import Any

from engine_streams import RECEIVED
from tocsin.wire.blackboard.messages import Message
from tocsin.wire.pegasus import Stampede

BEGAN = 1_794_811_200


def read(*records: bytes, stampede: Stampede | None = None) -> list[Message]:
    stampede = stampede or Stampede()
    messages = [message for record in records for message in stampede.read(record, RECEIVED)]
    assert stampede.unknown == 0
    return messages


def event(kind: str, at: float = 0, **fields: Any) -> bytes:
    reported = {"event": f"stampede.{kind}", "xwf_id": "u-1", "ts": BEGAN + at}
    return json.dumps(reported | fields).encode()


def job(kind: str, at: float = 0, number: int = 1, **fields: Any) -> bytes:
    return event(f"job_inst.{kind}", at, job_id="align_ID1", job_inst_id=number, **fields)
