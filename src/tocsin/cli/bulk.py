"""One action on many items: dry run, confirmation, and the result of each."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence

from tocsin.cli.failure import error_text
from tocsin.cli.progress import Progress
from tocsin.cli.render import plural, say, show, show_json
from tocsin.errors import BadSetting, SomeFailed, TocsinError

NAMED_MAX = 3
FAILURES_SHOWN_MAX = 20


def add_bulk(parser: ArgumentParser) -> None:
    """`--all`, `--dry-run` and `--yes`."""
    parser.add_argument("--all", action="store_true", help="all of them")
    parser.add_argument(
        "--dry-run", action="store_true", help="show what would be done, and do nothing"
    )
    parser.add_argument("--yes", action="store_true", help="without confirmation")


def must_choose(arguments: Namespace, chosen: bool) -> None:
    """Refuse a command that names nothing to act on."""
    if not chosen and not arguments.all:
        raise BadSetting("no id was given", remedy="Give ids, a filter, or --all.")


def apply_to_each(
    arguments: Namespace,
    verb: str,
    noun: str,
    names: Sequence[str],
    action: Callable[[str], object],
    *,
    confirm: bool,
) -> int:
    """Do `action` to each; exit code 7, by SomeFailed, if some failed.

    With `asks` there is a confirmation at a terminal; a script must give --yes.
    """
    if arguments.dry_run:
        for name in names:
            show_json({"would": verb, "id": name}) if arguments.json else show(name)
        say(f"would {verb} {plural(len(names), noun)}")
        return 0
    if confirm and not arguments.yes:
        _ask(verb, noun, names)
    failed = 0
    with Progress(verb, len(names)) as progress:
        for name in names:
            try:
                action(name)
                if arguments.json:
                    show_json({"id": name, "done": True})
            except TocsinError as error:
                failed += 1
                _print_failure(arguments, name, error, failed, alone=len(names) == 1)
            progress.advance()
    if not arguments.json:
        say(f"{verb}: {plural(len(names) - failed, noun)}")
    if failed:
        raise SomeFailed(
            f"{failed} of {plural(len(names), noun)} failed", remedy="See the lines above."
        )
    return 0


def _print_failure(
    arguments: Namespace, name: str, error: TocsinError, failed: int, *, alone: bool
) -> None:
    if alone:
        raise error
    if arguments.json:
        show_json({"id": name, "done": False, "problem": error.problem})
    elif failed <= FAILURES_SHOWN_MAX:
        say(f"{name}: {error_text(error).removeprefix('tocsin: ')}")


def _ask(verb: str, noun: str, names: Sequence[str]) -> None:
    if not names:
        return
    more = f" and {len(names) - NAMED_MAX} more" if len(names) > NAMED_MAX else ""
    what = f"{verb} {plural(len(names), noun)}: {', '.join(names[:NAMED_MAX])}{more}"
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise BadSetting(
            f"this would {what}",
            remedy="Add --yes to do it, or --dry-run to see what would be done.",
        )
    print(f"{what}? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise BadSetting("nothing was done", remedy="Answer y to go on, or use --yes.")
