"""Queries to a catalog of topics, each beside a full scan of the same catalog.

    python bench/topics_queries.py [--sizes 1000,10000,100000] [--quick] [--json FILE]

Every query is asked of catalogs of each size. Of most, ten advertisements match, whatever the size;
of those that say "common" a quarter or more match, and the first hundred are asked for. A full scan
is the same query with no index to use, taken to its end without regard to time; for a text query,
a regular expression for the same words. `/ smallest` is the
time beside that of the smallest catalog: 1 is flat. Queries that nothing is indexed for are taken
page by page; what counts there is how much is looked at in a second.
"""

from __future__ import annotations

import argparse
import random
import secrets
import statistics
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import msgspec

import report
from tocsin.drivers.topics.evaluators import Evaluators
from tocsin.store.topics.catalog import Catalog, CatalogLimits
from tocsin.store.topics.query_connection import connect_for_queries
from tocsin.store.topics.rows import rows_of
from tocsin.store.topics.search import Searcher
from tocsin.topics.descriptors import Descriptors
from tocsin.topics.queries.access_paths import Everything
from tocsin.topics.queries.cursor import KEY_BYTES
from tocsin.topics.queries.indexed import IndexedAdvertisement
from tocsin.topics.queries.plan import Plan, plan
from tocsin.topics.queries.query import Page, Query

SIZES = (1_000, 10_000, 100_000)
QUICK_SIZES = (500, 2_000)
MATCHING = 10
ROUNDS = 15
COMMIT = 128
DOCUMENT_BYTES = 1_200
SEED = 20_050_711
NOW_NS = 1
LABEL = "open"
HOUR_NS = 3_600 * 10**9
FOREVER_NS = 1 << 62
COMMON = ("radar", "ohio", "storm", "doppler", "weather", "hourly", "gridded", "raw")
BANDS = "SXCK"


def advertisement(number: int, dice: random.Random) -> IndexedAdvertisement:
    """Ten share a station; each has a text of 25 words, four properties and an XML document."""
    station = f"st{number // MATCHING}"
    band = BANDS[number % 4]
    words = [*dice.choices(COMMON, k=20), *(f"word{dice.randrange(5_000)}" for _ in range(5))]
    uuid = f"{number:08x}-0000-870c-8000-000000000000"
    return IndexedAdvertisement(
        uuid=uuid,
        version=1,
        topic=f"lead/{station}/{uuid}",
        creator=f"creator of {station}",
        creator_name="somebody",
        institution="Indiana University",
        created_ns=number * HOUR_NS,
        expires_ns=FOREVER_NS,
        label=LABEL,
        descriptors=Descriptors(
            text=f"{' '.join(words)} at {station}x",
            keywords=("radar", "weather"),
            properties={"station": station, "band": band, "power": number % 100, "open": True},
            xml=(
                f'<data id="d{number}"><instrument band="{band}"><name>radar of {station}</name>'
                f"<power unit='kW'>{number % 100}</power></instrument><place><state>Ohio</state>"
                f"<station>{station}</station></place><format>netcdf</format></data>"
            ),
        ),
        document=dice.randbytes(DOCUMENT_BYTES),
    )


def queries(size: int) -> list[tuple[str, bool, Query]]:
    """Name, whether an index serves it, and the query; for the ten in the middle."""
    middle = size // 2 // MATCHING * MATCHING
    station = f"st{middle // MATCHING}"
    first_ns, last_ns = middle * HOUR_NS, (middle + MATCHING - 1) * HOUR_NS
    asked = (
        ("uuid", True, "uuid", f"{middle:08x}-0000-870c-8000-000000000000"),
        ("text, rare word", True, "text", f"{station}x"),
        ("text, two common words", True, "text", "radar ohio"),
        ("prefix of the topic", True, "prefix", f"lead/{station}/"),
        ("sql, rare value", True, "sql", f"station = '{station}'"),
        ("sql, rare and common", True, "sql", f"band = 'S' AND station = '{station}' AND open"),
        ("sql, common range", True, "sql", "power BETWEEN 10 AND 59"),
        ("regex, rare literal", True, "regex", f"at {station}x$"),
        ("regex, common literal", True, "regex", "weather.*(doppler|storm)"),
        ("xpath, one", True, "xpath", f"/data[@id = 'd{middle}']"),
        ("xpath, rare value", True, "xpath", f"//place[station = '{station}' and state]"),
        ("xpath, common value", True, "xpath", "//instrument[@band = 'S']/name"),
        ("xquery, rare value", True, "xquery", f"//place[station = '{station}']"),
        (
            "xquery, for and where",
            True,
            "xquery",
            f"for $p in //place where $p/station = '{station}' return $p/state",
        ),
        ("sql, arithmetic", False, "sql", f"power * 2 + 1 = 0 OR station LIKE '%{station[1:]}'"),
        ("regex, no literal", False, "regex", "[0-9][a-z][0-9]x$"),
        ("xpath, count", False, "xpath", "count(//*) > 50"),
        ("xquery, let", False, "xquery", "let $n := count(//*) return $n > 50"),
    )
    found = [(name, flag, Query(language=way, expression=text)) for name, flag, way, text in asked]
    found += [
        ("creator", True, Query(creator=f"creator of {station}")),
        ("created between", True, Query(created_from_ns=first_ns, created_until_ns=last_ns)),
    ]
    return found


def fill(directory: Path, size: int) -> dict[str, float]:
    """Advertise so many, durably, and say what that took."""
    limits = CatalogLimits(topics_max=size, bytes_max=1 << 40)
    catalog = Catalog.open(directory, limits)
    dice = random.Random(SEED)
    worked_out_s = written_s = 0.0
    for start in range(0, size, COMMIT):
        given = [advertisement(each, dice) for each in range(start, min(start + COMMIT, size))]
        begun = time.perf_counter()
        rows = [rows_of(each) for each in given]
        between = time.perf_counter()
        catalog.put(rows, NOW_NS)
        worked_out_s += between - begun
        written_s += time.perf_counter() - between
    catalog.close()
    return {
        "size": size,
        "worked_out_us": worked_out_s / size * 1e6,
        "written_us": written_s / size * 1e6,
        "bytes": (directory / "topics.sqlite").stat().st_size / size,
    }


def searcher_of(directory: Path, evaluators: Evaluators, budget_ns: int) -> Searcher:
    path = str(directory / "topics.sqlite")
    return Searcher(
        connect_for_queries(path, time.monotonic_ns),
        path,
        cursor_key=secrets.token_bytes(KEY_BYTES),
        stopwatch_ns=time.monotonic_ns,
        evaluate=evaluators,
        budget_ns=budget_ns,
    )


def unindexed(wanted: Plan) -> Plan:
    """The same, with nothing to look it up by: every advertisement is a candidate."""
    return replace(wanted, choices=((Everything(),),), values=())


def scan_query(query: Query) -> Query:
    """What to scan with: a text query is looked up in an index of words even for one candidate."""
    if query.language != "text":
        return query
    first, *rest = query.expression.split()
    either = f"{first}.*{rest[0]}|{rest[0]}.*{first}" if rest else first
    return Query(language="regex", expression=rf"(?i)\b({either})\b")


def first_page(searcher: Searcher, query: Query) -> tuple[float, Page]:
    """The best time of several, since other work shares the machine, and the page."""
    times: list[float] = []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        page = searcher.search(query, plan(query), frozenset({LABEL}), NOW_NS)
        times.append(time.perf_counter() - begun)
    return min(times), page


def every_page(searcher: Searcher, query: Query, wanted: Plan) -> tuple[float, float, int, int]:
    """Seconds in all, of the longest page, how many pages, and how many were found."""
    longest_s = total_s = 0.0
    pages = found = 0
    cursor = ""
    while True:
        asked = msgspec.structs.replace(query, cursor=cursor, limit=1_000)
        begun = time.perf_counter()
        page = searcher.search(asked, wanted, frozenset({LABEL}), NOW_NS)
        page_s = time.perf_counter() - begun
        longest_s, total_s = max(longest_s, page_s), total_s + page_s
        pages += 1
        found += len(page.advertisements)
        cursor = page.next
        if not cursor:
            return total_s, longest_s, pages, found


def measure(directory: Path, size: int, evaluators: Evaluators) -> list[dict[str, object]]:
    """Each query on its indexes, and as a full scan."""
    served = searcher_of(directory, evaluators, 10**9)
    patient = searcher_of(directory, evaluators, HOUR_NS)
    rows: list[dict[str, object]] = []
    for name, is_indexed, query in queries(size):
        wanted = plan(query)
        if is_indexed:
            page_s, page = first_page(served, query)
            scanned = scan_query(query)
            scan_s, _, _, found = every_page(patient, scanned, unindexed(plan(scanned)))
            assert len(page.advertisements) == min(found, query.limit), name
            rows.append(
                {
                    "query": name,
                    "size": size,
                    "found": len(page.advertisements),
                    "ms": page_s * 1e3,
                    "scan_ms": scan_s * 1e3,
                    "scan_over_indexed": scan_s / page_s,
                }
            )
            continue
        total_s, longest_s, pages, found = every_page(served, query, wanted)
        rows.append(
            {
                "query": name,
                "size": size,
                "found": found,
                "scan_ms": total_s * 1e3,
                "pages": pages,
                "longest_page_s": longest_s,
                "looked_at_per_s": size / total_s,
            }
        )
    served.close()
    patient.close()
    return rows


def with_growth(rows: list[dict[str, object]]) -> None:
    """Beside the smallest catalog."""
    smallest = {row["query"]: row["ms"] for row in reversed(rows) if "ms" in row}
    for row in rows:
        if "ms" in row:
            row["over_smallest"] = float(str(row["ms"])) / float(str(smallest[row["query"]]))


def show(rows: list[dict[str, object]], columns: dict[str, str]) -> None:
    report.table(list(columns.values()), [[row.get(name) for name in columns] for row in rows])
    print()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sizes", help="how many advertisements, as in 1000,10000")
    parser.add_argument("--quick", action="store_true", help="small catalogs")
    parser.add_argument("--json", type=Path, help="write the results here")
    options = parser.parse_args()
    sizes = QUICK_SIZES if options.quick else SIZES
    if options.sizes:
        sizes = tuple(int(each) for each in options.sizes.split(","))
    evaluators = Evaluators()
    stored: list[dict[str, float]] = []
    rows: list[dict[str, object]] = []
    for size in sizes:
        with tempfile.TemporaryDirectory() as directory:
            stored.append(fill(Path(directory), size))
            rows += measure(Path(directory), size, evaluators)
    evaluators.close()
    with_growth(rows)
    indexed = [row for row in rows if "ms" in row]
    scanned = [row for row in rows if "ms" not in row]
    show(stored, {name: name for name in ("size", "worked_out_us", "written_us", "bytes")})
    names = ("query", "size", "found", "ms", "over_smallest", "scan_ms", "scan_over_indexed")
    show(sorted(indexed, key=lambda row: str(row["query"])), {name: name for name in names})
    names = ("query", "size", "found", "scan_ms", "pages", "longest_page_s", "looked_at_per_s")
    show(sorted(scanned, key=lambda row: str(row["query"])), {name: name for name in names})
    largest = [row for row in indexed if row["size"] == max(sizes)]
    growth = [float(str(row["over_smallest"])) for row in largest]
    results = {
        "stored": stored,
        "indexed": indexed,
        "scanned": scanned,
        "growth_median": statistics.median(growth),
        "growth_worst": max(growth),
        "scan_over_indexed_least": min(float(str(row["scan_over_indexed"])) for row in largest),
        "longest_page_s": max(float(str(row["longest_page_s"])) for row in scanned),
    }
    for name in ("growth_median", "growth_worst", "scan_over_indexed_least", "longest_page_s"):
        print(f"{name}: {results[name]:.3g}")
    if options.json:
        report.write("topics_queries", results, options.json)


if __name__ == "__main__":
    main()
