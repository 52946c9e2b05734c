"""`tocsin bench`: how fast is this broker, on this machine, now."""

from __future__ import annotations

from argparse import REMAINDER, Namespace
from pathlib import Path

from tocsin.cli.parser import Parser, add_broker

SUMMARY = "Put a short load on a broker, or run a benchmark of the checkout"
EXAMPLES = """
  tocsin bench                                      5 seconds of load on the running broker
  tocsin bench --quick --json
  tocsin bench --list                               the scripts in bench/, in a checkout
"""

SECONDS = 5.0
QUICK_SECONDS = 1.0
PUBLISHERS_MAX = 1_000


def add_arguments(parser: Parser) -> None:
    parser.add_argument("--list", action="store_true", help="list the scripts in bench/")
    parser.add_argument("--quick", action="store_true", help="about a second")
    parser.add_argument(
        "--publishers", metavar="N", type=int, default=8, help="publishers at once (8)"
    )
    add_broker(parser)
    parser.add_argument("script", metavar="SCRIPT", nargs="?", help="a script in bench/ to run")
    parser.add_argument("rest", metavar="...", nargs=REMAINDER, help="its own arguments")


def run(arguments: Namespace) -> int:
    if arguments.list:
        return _list(arguments)
    if arguments.script is not None:
        return _run_script(arguments)
    return _load(arguments)


def scripts() -> dict[str, Path]:
    """The benchmarks of a checkout; none where only the package is installed."""
    directory = Path(__file__).parents[4] / "bench"
    found = {path.stem: path for path in sorted(directory.glob("*.py"))}
    return {name: path for name, path in found.items() if "__main__" in path.read_text("utf-8")}


def _list(arguments: Namespace) -> int:
    from tocsin.cli.render import say, show_json, table

    rows = []
    for name, path in scripts().items():
        _, _, about = path.read_text("utf-8").partition('"""')
        rows.append((name, about.split("\n")[0].removesuffix('"""')))
    if arguments.json:
        show_json([{"name": name, "about": about} for name, about in rows])
    elif rows:
        table(("script", "about"), rows)
    else:
        say("no scripts here (no source checkout); `tocsin bench` measures the running broker")
    return 0


def _run_script(arguments: Namespace) -> int:
    import subprocess
    import sys

    from tocsin.errors import BadSetting

    path = scripts().get(arguments.script)
    if path is None:
        raise BadSetting(
            f"there is no benchmark {arguments.script!r}", remedy="`tocsin bench --list`."
        )
    quick = ["--quick"] if arguments.quick else []
    return subprocess.run(
        [sys.executable, str(path), *quick, *arguments.rest], check=False
    ).returncode


def _load(arguments: Namespace) -> int:
    import asyncio

    from tocsin.cli.bench.load import histogram, quantile, run_load
    from tocsin.cli.render import fields, show, show_json

    seconds = QUICK_SECONDS if arguments.quick else SECONDS
    publishers = max(1, min(arguments.publishers, PUBLISHERS_MAX))
    load = asyncio.run(run_load(arguments.broker, publishers=publishers, seconds=seconds))
    result = {
        "publishers": publishers,
        "published": load.published,
        "received": load.received,
        "published_per_s": round(load.published / load.elapsed_s),
        "answer_ms_p50": round(quantile(load.answer_s, 0.5) * 1000, 2),
        "answer_ms_p99": round(quantile(load.answer_s, 0.99) * 1000, 2),
        "delivery_ms_p50": round(quantile(load.delivery_s, 0.5) * 1000, 2),
        "delivery_ms_p99": round(quantile(load.delivery_s, 0.99) * 1000, 2),
    }
    if arguments.json:
        show_json(result)
    else:
        fields(result.items())
        show("from publish to delivery:")
        show("\n".join(histogram(load.delivery_s)))
    return 0 if load.received >= load.published else 1
