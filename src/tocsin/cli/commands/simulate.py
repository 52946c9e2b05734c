"""`tocsin simulate`: the whole broker in a simulated world, from one seed."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tocsin.cli.parser import Parser, add_json
from tocsin.cli.progress import Progress
from tocsin.cli.render import fields, plural, say, show_json

if TYPE_CHECKING:
    from tocsin.sim.run import Report

SUMMARY = "Run the broker in a simulated world with faults, from seeds"
EXAMPLES = """
  tocsin simulate --seed 7                          one run, exactly as it was before
  tocsin simulate --seeds 1000                      a thousand runs
  tocsin simulate --seeds 1000 --start 5000 --json
"""

SEEDS_MAX = 10_000_000
SEEDS_FOR_PROCESSES = 100  # fewer are done before other processes have started


def add_arguments(parser: Parser) -> None:
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--seed", metavar="N", type=int, help="run this seed")
    which.add_argument("--seeds", metavar="N", type=int, default=100, help="run N seeds (100)")
    parser.add_argument("--start", metavar="N", type=int, default=0, help="the first of them (0)")
    add_json(parser)


def run(arguments: Namespace) -> int:
    from dataclasses import asdict

    first = arguments.start if arguments.seed is None else arguments.seed
    count = min(arguments.seeds, SEEDS_MAX) if arguments.seed is None else 1
    failed: list[int] = []
    with Progress("seeds", count) as progress:
        for report in _reports(first, count):
            if arguments.json:
                show_json(asdict(report))
            elif arguments.seed is not None:
                fields(asdict(report).items())
            if not report.ok:
                failed.append(report.seed)
                say(f"seed {report.seed} failed: {report.failure}")
                say(f"replay with: tocsin simulate --seed {report.seed}")
            progress.advance()
    say(f"{plural(count, 'seed')}, {len(failed)} failed")
    return 1 if failed else 0


def _reports(first: int, count: int) -> Iterator[Report]:
    """One after another, in the order of the seeds; many of them by a process for each core."""
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    from tocsin.sim.run import run_seed, run_seeds

    if count < SEEDS_FOR_PROCESSES:
        yield from run_seeds(first, count)
        return
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        yield from pool.map(run_seed, range(first, first + count), chunksize=10)
