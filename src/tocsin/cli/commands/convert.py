"""`tocsin convert`: show one message in another specification's form."""

from __future__ import annotations

import sys
from argparse import Namespace
from typing import TYPE_CHECKING

from tocsin.cli.parser import Parser, add_json
from tocsin.cli.soap_options import SPECS, add_versions, read_input

if TYPE_CHECKING:
    from tocsin.event.event import Event

SUMMARY = "Show a notification in the form of another specification"
EXAMPLES = """
  tocsin convert --to wse notify.xml
  tocsin convert --to all --pretty captured.http
  tocsin sub 'lead/**' -n 1 --json | tocsin convert --to wsn13 -
  tocsin sub 'lead/**' -n 1 --json | tocsin convert --to gma --pretty -
"""

EVERY = "all"
FORMS = (*SPECS, "cloudevents", "cloudevents-xml", "gma", EVERY)


def add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "file",
        metavar="FILE",
        help="a message: SOAP, CloudEvents, performance event or captured HTTP; - is stdin",
    )
    parser.add_argument("--to", required=True, choices=FORMS, help="the form to show it in")
    parser.add_argument(
        "--from",
        dest="form",
        choices=("auto", "soap", "cloudevents", "payload"),
        default="auto",
        help="what it is (auto); with payload, any XML is the data of an event",
    )
    add_versions(parser)
    parser.add_argument(
        "--pretty", action="store_true", help="indent the XML, which changes payloads"
    )
    add_json(parser)


def run(arguments: Namespace) -> int:
    from tocsin.cli.convert.conversion import read_message
    from tocsin.cli.render import plural, say

    found = read_message(read_input(arguments.file), arguments.form)
    say(f"tocsin: this is {found.form}; {plural(len(found.events), 'notification')}")
    for event in found.events:
        for form, message in _forms(event, arguments):
            _show(form, message, arguments)
    return 0


def _forms(event: Event, arguments: Namespace) -> list[tuple[str, bytes]]:
    from tocsin.cli.convert.conversion import in_every_form, write_event

    soap, addressing = arguments.soap, arguments.addressing
    if arguments.to == EVERY:
        return list(in_every_form(event, soap=soap, addressing=addressing).items())
    written = write_event(event, arguments.to, soap=soap, addressing=addressing)
    return [(arguments.to, written)]


def _show(form: str, message: bytes, arguments: Namespace) -> None:
    from tocsin.cli.render import safe, show_json

    text = _indented(form, message) if arguments.pretty else message.decode()
    if arguments.json:
        show_json({"form": form, "message": text})
        return
    if arguments.to == EVERY:
        text = f"# {form}\n{text}\n"
    sys.stdout.write((safe(text) if sys.stdout.isatty() else text) + "\n")


def _indented(form: str, message: bytes) -> str:
    if form != "cloudevents":
        from tocsin.cli.xml_format import pretty

        return pretty(message)
    import json

    return json.dumps(json.loads(message), indent=2, ensure_ascii=False)
