"""`tocsin topics`: which topics there are."""

from __future__ import annotations

from argparse import Namespace

from tocsin.cli.parser import Parser, add_actions, add_broker

SUMMARY = "List topics, with the number of events, rate and last time of each"
EXAMPLES = """
  tocsin topics ls
  tocsin topics ls 'lead/**' --sort rate
  tocsin topics ls lead/ --json
"""
LIMIT_MAX = 10_000


def add_arguments(parser: Parser) -> None:
    actions = add_actions(parser)
    ls = actions.add_parser("ls", examples=EXAMPLES, help="list topics")
    ls.add_argument(
        "pattern", metavar="PATTERN", nargs="?", help="a pattern as lead/**, or a prefix as lead/"
    )
    ls.add_argument(
        "--sort",
        choices=("topic", "events", "rate", "last"),
        default="topic",
        help="by name (the default), or the largest or latest first",
    )
    ls.add_argument("--limit", metavar="N", type=int, default=1_000, help="at most N topics (1000)")
    add_broker(ls)


def run(arguments: Namespace) -> int:
    from tocsin.cli.render import plural, say, show_json, table
    from tocsin.cli.rest import Rest

    pattern = arguments.pattern
    if pattern and pattern.endswith("/"):
        pattern += "**"
    with Rest(arguments.broker) as rest:
        page = rest.get("/topics", pattern=pattern, sort=arguments.sort, limit=arguments.limit)
    if arguments.json:
        show_json(page)
        return 0
    rows = [
        (
            each["topic"] or "(none)",
            f"{each['events']:,}",
            f"{each['events_per_s']:,.2f}",
            each["last_time"],
        )
        if each["events"] is not None
        else (each["topic"] or "(none)", "-", "-", "-")
        for each in page["topics"]
    ]
    table(("topic", "events", "events/s", "last"), rows, limit=LIMIT_MAX)
    if page["counted_from"] > 1:
        say(f"Events are counted from number {page['counted_from']:,} on.")
    if page["more"]:
        say(f"There are more than {plural(arguments.limit, 'topic')}; see --limit and PATTERN.")
    if page["forgotten"]:
        say(
            f"The broker keeps {page['topics_max']:,} topics; {page['forgotten']:,} that were "
            "silent for longest are not listed any more."
        )
    return 0
