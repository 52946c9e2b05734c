"""`tocsin pub`: publish one event, or one event a line."""

from __future__ import annotations

import sys
from argparse import Namespace
from typing import TYPE_CHECKING, Any

from tocsin.cli.parser import Parser, add_broker, add_identity
from tocsin.cli.soap_options import add_namespaces, add_specification, read_input, refuse
from tocsin.client.event_json import DEFAULT_TYPE, default_source, event_json, new_id, now_text

if TYPE_CHECKING:
    from tocsin.client.event_signer import EventSigner

SUMMARY = "Publish an event, or one a line from standard input"
EXAMPLES = """
  tocsin pub lead/ohio/radar '{"load5": 7}'
  tocsin pub job/done --attr run=42 --data-file result.json
  tail -f app.log | tocsin pub app/log -
  tocsin pub lead/ohio/radar '{"load5": 7}' --sign
  tocsin pub --as wse --topic lead/ohio/radar sweep.xml
  tocsin pub --as wsn13 lead/ohio/radar '<load5>7</load5>'
"""

LINES = "-"
STREAM_PATIENCE_S = 30.0
_NEEDS_SPECIFICATION: dict[str, object] = {
    "soap": None,
    "addressing": None,
    "to": None,
    "namespace": [],
    "filed_under": None,
}
_NOT_WITH_SPECIFICATION: dict[str, object] = {"sign": False}


def add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "topic",
        metavar="TOPIC",
        help="its topic; - reads CloudEvents, one a line; with --as and no DATA, an XML file or -",
    )
    parser.add_argument(
        "data",
        metavar="DATA",
        nargs="?",
        help="JSON or text; - publishes each line of standard input as the data of an event",
    )
    parser.add_argument("--type", default=DEFAULT_TYPE, help=f"its type ({DEFAULT_TYPE})")
    parser.add_argument("--source", help="who publishes (/HOST/USER/pub)")
    parser.add_argument("--id", help="its id; the same source and id is stored once")
    parser.add_argument("--subject", help="what it is about")
    parser.add_argument(
        "--time", metavar="T", help="when it happened, as in 2026-03-01T12:00:00Z (now)"
    )
    parser.add_argument(
        "--attr",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="an extension attribute; may be repeated",
    )
    parser.add_argument(
        "--data-file", metavar="FILE", help="read the data from a file; - is all of standard input"
    )
    parser.add_argument("--content-type", metavar="TYPE", help="its content type")
    parser.add_argument(
        "--patience", metavar="S", type=float, default=0.0, help="keep trying for S seconds (0)"
    )
    parser.add_argument("--keep-going", action="store_true", help="skip bad lines, and exit with 7")
    parser.add_argument("--sign", action="store_true", help="sign it; see tocsin verify")
    add_identity(parser)
    add_specification(parser)
    parser.add_argument(
        "--topic", dest="filed_under", metavar="T", help="with --as: the topic of a file"
    )
    parser.add_argument("--to", metavar="URL", help="with --as: a consumer to send it to directly")
    add_namespaces(parser)
    add_broker(parser)


def run(arguments: Namespace) -> int:
    if arguments.spec is not None:
        from tocsin.cli.pub.soap import publish_as

        refuse(arguments, _NOT_WITH_SPECIFICATION, f"with --as {arguments.spec}")
        return publish_as(arguments)
    refuse(arguments, _NEEDS_SPECIFICATION, "without --as")
    if LINES in (arguments.topic, arguments.data):
        return _publish_lines(arguments)
    from tocsin.client.batch_sender import publish_event
    from tocsin.client.transport.connection import Connection

    data, content_type = _payload(arguments)
    named = {**_attributes(arguments), "datacontenttype": content_type}
    named["id"] = arguments.id or new_id()
    named["time"] = arguments.time or now_text()
    event, signer = event_json(named, data), _signer(arguments)
    if signer is not None:
        event = signer.sign(event)
    with Connection(arguments.broker) as connection:
        stored = publish_event(connection, event, arguments.patience)
    if arguments.json:
        print(f'{{"id":{_quoted(named["id"])},"seq":{stored.last}}}')
    elif sys.stderr.isatty():
        print(f"stored as {stored.last}", file=sys.stderr)
    return 0


def _signer(arguments: Namespace) -> EventSigner | None:
    if not arguments.sign:
        return None
    from tocsin.cli.identity import identity_of
    from tocsin.client.event_signer import EventSigner

    return EventSigner(identity_of(arguments))


def _quoted(text: str) -> str:
    import json

    return json.dumps(text)


def _attributes(arguments: Namespace) -> dict[str, Any]:
    named: dict[str, Any] = {
        "source": arguments.source or default_source(),
        "type": arguments.type,
        "topic": None if arguments.topic == LINES else arguments.topic,
        "subject": arguments.subject,
        "time": arguments.time,
    }
    for pair in arguments.attr:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            from tocsin.errors import BadSetting

            raise BadSetting(f"--attr {pair!r} has no =", remedy="Write --attr NAME=VALUE.")
        named[name] = value
    return named


def _payload(arguments: Namespace) -> tuple[bytes | None, str | None]:
    """The data and its type: as declared, or else JSON if it is, text if it is, bytes if not."""
    if arguments.data_file is not None:
        data = read_input(arguments.data_file)
    elif arguments.data is None:
        _refuse_unasked_input(arguments.topic)
        return None, arguments.content_type
    else:
        data = arguments.data.encode("utf-8", "surrogateescape")
    content_type = arguments.content_type or guess_type(data)
    if arguments.content_type is None and content_type != "application/json":
        _warn_of_broken_json(data, content_type)
    return data, content_type


def _warn_of_broken_json(data: bytes, content_type: str) -> None:
    """Mostly a quote removed by the shell: it is published with a warning."""
    if data.lstrip()[:1] not in (b"{", b"["):
        return
    from tocsin.client.event_json import json_problem

    print(
        f"tocsin: warning: the data begins like JSON and is not valid JSON ({json_problem(data)}); "
        f"it is published as {content_type}\n"
        "Put single quotes around the data, or use --content-type text/plain for text.",
        file=sys.stderr,
    )


def _refuse_unasked_input(topic: str) -> None:
    """Input that waits and is not read is a mistake: `echo x | tocsin pub t`.

    It is not read unasked: within `while read` it is the loop's, and in `bash -s` it is the script.
    Nor is it waited for: a job may inherit a pipe that stays open and empty.
    """
    import os
    import select
    import stat

    try:
        kind = os.fstat(0)
        waits = (
            bool(select.select([0], [], [], 0)[0] and _bytes_in_pipe())
            if stat.S_ISFIFO(kind.st_mode)
            else stat.S_ISREG(kind.st_mode) and os.lseek(0, 0, os.SEEK_CUR) < kind.st_size
        )
    except OSError:
        return  # closed, as some job systems leave it
    if waits:
        from tocsin.errors import BadSetting

        raise BadSetting(
            "there is data on standard input, but no DATA argument",
            remedy=f"`tocsin pub {topic} -` publishes its lines, --data-file - all of it, "
            "and with </dev/null it is left alone.",
        )


def _bytes_in_pipe() -> int:
    """How many wait; a pipe that was closed at its other end is ready to be read, and empty."""
    from array import array
    from fcntl import ioctl
    from termios import FIONREAD

    count = array("i", [0])
    ioctl(0, FIONREAD, count)
    return count[0]


def guess_type(data: bytes) -> str:
    """The content type of undeclared data."""
    from tocsin.client.event_json import check_json
    from tocsin.errors import BadEvent

    try:
        check_json(data)
        return "application/json"
    except BadEvent:
        try:
            data.decode()
            return "text/plain"
        except UnicodeDecodeError:
            return "application/octet-stream"


def _publish_lines(arguments: Namespace) -> int:
    from tocsin.cli.pub.publish_lines import publish_lines

    patience_s = max(arguments.patience, STREAM_PATIENCE_S)
    return publish_lines(
        sys.stdin.buffer,
        arguments.broker,
        _attributes(arguments),
        patience_s=patience_s,
        keep_going=arguments.keep_going,
        as_json=arguments.json,
        signer=_signer(arguments),
    )
