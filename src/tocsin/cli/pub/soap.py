"""`tocsin pub --as SPEC`: publish one XML element by WS-Eventing or WS-Notification."""

from __future__ import annotations

import sys
from argparse import Namespace
from typing import Final

from tocsin.cli.render import show_json
from tocsin.cli.soap_options import client_of, namespaces, read_input, refuse
from tocsin.client.event_json import DEFAULT_TYPE
from tocsin.errors import BadSetting

_UNUSABLE: Final[dict[str, object]] = {
    "subject": None,
    "time": None,
    "attr": [],
    "content_type": None,
    "keep_going": False,
}


def publish_as(arguments: Namespace) -> int:
    """Publish to the broker, or straight to the consumer of `--to`; the exit code."""
    refuse(arguments, _UNUSABLE, "with --as")
    topic, payload = _what(arguments)
    with client_of(arguments, patience_s=arguments.patience) as client:
        message_id = client.publish(
            payload,
            topic,
            to=arguments.to,
            producer=arguments.source,
            action=None if arguments.type == DEFAULT_TYPE else arguments.type,
            message_id=arguments.id,
            namespaces=namespaces(arguments.namespace),
        )
    if arguments.json:
        show_json({"id": message_id})
    elif sys.stderr.isatty():
        print(f"published as {message_id}", file=sys.stderr)
    return 0


def _what(arguments: Namespace) -> tuple[str | None, bytes | str]:
    """Topic and payload: `--topic T FILE`, or `TOPIC DATA` as without --as."""
    if arguments.data is None and arguments.data_file is None:
        return arguments.filed_under, read_input(arguments.topic)
    if arguments.filed_under is not None:
        raise BadSetting(
            "the topic is named twice",
            remedy="Write `tocsin pub --as wse --topic T FILE`, or `... TOPIC DATA`.",
        )
    if arguments.data is not None:
        return arguments.topic, arguments.data.encode("utf-8", "surrogateescape")
    return arguments.topic, read_input(arguments.data_file)
