"""`tocsin pipeline`: history made into tables, by Spark; and the tables shown."""

from __future__ import annotations

from argparse import Namespace

from tocsin.cli.parser import Parser, add_actions, add_json, add_sign_in

SUMMARY = "Make tables of the archive with Spark, keep them up to date, show them, report on them"
EXAMPLES = """
  tocsin pipeline run --archive tocsin-data/archive
  tocsin pipeline stream --archive http://127.0.0.1:8400 --refresh 60
  tocsin pipeline show activity_stats --sort=-p90_s --limit 10
  tocsin pipeline report --html report.html
"""
RUN_EXAMPLES = """
  tocsin pipeline run                                  what the broker here archived
  tocsin pipeline run --archive made --tables out      another archive, other tables
  tocsin pipeline run --since 30d --tables last-month
  tocsin pipeline run --master spark://head:7077 --conf spark.executor.memory=4g
  tocsin pipeline run --archive kafka://one:9092,two:9092/runs --publish s3://bucket/tables
"""
STREAM_EXAMPLES = """
  tocsin pipeline stream                               until it is stopped; resumes where it was
  tocsin pipeline stream --once                        what is there now, and no more
  tocsin pipeline stream --archive http://127.0.0.1:8400 --trigger 2 --refresh 20
"""
SHOW_EXAMPLES = """
  tocsin pipeline show                                 which tables there are
  tocsin pipeline show runs --where 'state = failed' --limit 20
  tocsin pipeline show cost_models --columns activity,target,slope,median_error --json
"""
QUALITY_EXAMPLES = """
  tocsin pipeline quality
  tocsin pipeline quality --tables out --json
"""
REPORT_EXAMPLES = """
  tocsin pipeline report --html report.html
  tocsin pipeline report --tables out --html march.html --title 'March'
"""


def add_arguments(parser: Parser) -> None:
    actions = add_actions(parser)
    run = actions.add_parser("run", examples=RUN_EXAMPLES, help="bring the tables up to date")
    _add_input(run)
    run.add_argument(
        "--since", metavar="T", help="only what was received from then on: 30d, a date"
    )
    run.add_argument("--until", metavar="T", help="only what was received before then")
    stream = actions.add_parser(
        "stream", examples=STREAM_EXAMPLES, help="keep the tables up to date as events come"
    )
    _add_input(stream)
    _add_pace(stream)
    show = actions.add_parser("show", examples=SHOW_EXAMPLES, help="print rows of a table")
    _add_show(show)
    quality = actions.add_parser(
        "quality",
        examples=QUALITY_EXAMPLES,
        help="run every check of the tables; exit 1 if one fails",
    )
    _add_spark(quality)
    report = actions.add_parser("report", examples=REPORT_EXAMPLES, help="one page with plots")
    report.add_argument("--html", metavar="FILE", help="where to write it (standard output)")
    report.add_argument("--title", metavar="TEXT", help="the title of the report")
    for each in (run, stream, show, quality, report):
        each.add_argument(
            "--tables", metavar="DIR", help="where the tables are (`tables` in the data directory)"
        )
    for each in (run, stream, show, quality, report):
        add_json(each)


def _add_input(parser: Parser) -> None:
    option = parser.add_argument
    option(
        "--archive", metavar="PLACE", help="a directory, a broker, s3a://..., kafka://HOST/TOPIC"
    )
    option(
        "--publish", metavar="PLACE", help="copy each version there: s3://..., kafka://HOST/PREFIX"
    )
    add_sign_in(parser)
    option("--rebuild", action="store_true", help="delete the tables and make them again")
    _add_spark(parser)


def _add_spark(parser: Parser) -> None:
    option = parser.add_argument
    option("--master", metavar="URL", default="local[*]", help="where Spark runs (local[*])")
    option("--conf", metavar="K=V", action="append", default=[], help="a setting of Spark")
    option(
        "--verbose",
        action="store_true",
        help="name each step also with --json; if Spark fails, print its whole error output",
    )


def _add_pace(parser: Parser) -> None:
    option = parser.add_argument
    option("--trigger", metavar="S", type=float, default=5.0, help="seconds between batches (5)")
    option("--refresh", metavar="S", type=float, default=30.0, help="seconds between tables (30)")
    option("--rows", metavar="N", type=int, default=1_000_000, help="events in a batch (1M)")
    option(
        "--watermark",
        metavar="S",
        type=float,
        default=600.0,
        help="events that arrive later than this count as late (600)",
    )
    option("--once", action="store_true", help="stop when all present events are processed")


def _add_show(parser: Parser) -> None:
    option = parser.add_argument
    option("table", metavar="TABLE", nargs="?", help="a table; without it, the tables are listed")
    option("--where", metavar="F", help="rows that pass a filter, as 'p90_s > 60 and failed > 0'")
    option("--sort", metavar="COLUMNS", help="by these, as --sort=-p90_s,workflow")
    option("--columns", metavar="NAMES", help="only these, or all")
    option("--limit", metavar="N", type=int, default=50, help="at most N rows (50)")


def run(arguments: Namespace) -> int:
    from tocsin.cli.pipeline import actions

    functions = {
        "run": actions.run,
        "stream": actions.stream,
        "show": actions.show,
        "quality": actions.quality,
        "report": actions.report,
    }
    return functions[arguments.action](arguments)
