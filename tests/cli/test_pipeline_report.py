"""The report: everything is on one page, what strangers named is shown and does nothing."""

from __future__ import annotations

import json
import re
import time
from datetime import timedelta
from html.parser import HTMLParser
from importlib.resources import files
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from sample_tables import START, year
from table_files import NOW, publish
from tocsin.cli.report import report
from tocsin.cli.report.markup import tag, text
from tocsin.cli.report.numbers import count, duration, hours, ratio, share
from tocsin.cli.report.scales import ceiling, log_seconds_ticks, time_buckets
from tocsin.cli.report.source import _spread
from tocsin.errors.pipeline import NoTables
from tocsin.tables.schemas import TABLES

NAUGHTY = Path(__file__).parents[2] / "../shared/data/hostile/blns/blns.json"
VOID = {"meta", "br"}
SECTIONS = (
    *("workflows", "activities", "failures", "durations", "usage", "versions", "costs"),
    *("estimates", "deliveries", "discoveries", "quality"),
)


class Page(HTMLParser):
    """What a browser would find: elements in balance, links, texts."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]

    @property
    def words(self) -> str:
        return " ".join(self.texts)


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = year(runs=600, hosts=30, days=120)
    return publish(tmp_path_factory.mktemp("year"), made, {"events": 12_000, "duplicates": 77})


def test_the_page_has_every_section_and_needs_nothing_else(tables: Path, tmp_path: Path) -> None:
    out = tmp_path / "report.html"

    html = report(tables, out=out, title="A <year> & a day", now=NOW)

    page = Page(html)
    assert out.read_text() == html
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    assert page.open == []
    assert {each.get("id") for each in page.named("section")} == {"overview", *SECTIONS}
    assert {each["href"] for each in page.named("a")} == {f"#{key}" for key in SECTIONS}
    assert not {"script", "img", "link", "iframe", "object", "form"} & {n for n, _ in page.elements}
    assert not re.search(r"url\(|@import|javascript:", html)
    assert "A <year> & a day" in page.words
    for figure in ("svg", "table", "details"):
        assert len(page.named(figure)) > 20
    assert all(each.get("aria-label") or each.get("height") for each in page.named("svg"))


def test_the_page_says_what_the_tables_say(tables: Path) -> None:
    page = Page(report(tables, now=NOW))

    assert "600" in page.texts  # runs
    assert "made 2026-11-16 09:00 UTC, 3 h ago" in page.words
    assert "median" in page.words
    assert "No such file or directory" in page.words
    assert "came more than once" in page.words
    assert "24 of 30 hosts are listed." in page.texts
    assert "12 of 33 activities are listed." in page.texts
    assert "gave up after 8 attempts: 503 (400)" in page.texts
    # One clock was twelve years off: it makes no plot of twelve years.
    assert "left out of plots over time" in page.words
    assert "2014" not in page.words


def test_the_page_says_of_which_window_the_tables_are(tmp_path: Path) -> None:
    windows = {
        "since": {"since": START},
        "until": {"until": NOW},
        "both": {"since": START, "until": NOW},
        "all": {},
    }
    for name, window in windows.items():
        publish(tmp_path / name, {}, **window)

    said = {name: Page(report(tmp_path / name, now=NOW)).words for name in windows}

    start, now = (f"{each:%Y-%m-%d %H:%M}" for each in (START, NOW))
    assert f"up to 48.2 M, of what was received since {start} UTC." in said["since"]
    assert f"up to 48.2 M, of what was received before {now} UTC." in said["until"]
    assert f"of what was received from {start} to {now} UTC." in said["both"]
    assert "up to 48.2 M." in said["all"]


def test_a_page_of_nothing_says_so_in_every_section(tmp_path: Path) -> None:
    page = Page(report(publish(tmp_path, {}), now=NOW))

    empty = [each for each in page.named("p") if each.get("class") == "nothing"]
    assert len(empty) >= len(SECTIONS) - 1
    assert page.open == []


def test_without_tables_it_says_how_to_make_them(tmp_path: Path) -> None:
    with pytest.raises(NoTables, match="tocsin pipeline run"):
        report(tmp_path, now=NOW)


def test_a_damaged_file_is_named_and_no_page_is_written(tmp_path: Path) -> None:
    tables = publish(tmp_path / "tables", year(runs=20, hosts=2, days=3))
    (tables / "failures" / "part-00000.parquet").write_bytes(b"PAR1 no more")

    with pytest.raises(NoTables, match="table failures cannot be read"):
        report(tables, out=tmp_path / "report.html", now=NOW)

    assert not (tmp_path / "report.html").exists()


HOSTILE = [
    "<script>alert(1)</script>",
    "\"><img src=x onerror='alert(1)'>",
    "</title></svg></style><svg onload=alert(1)>",
    "javascript:alert(1)",
    "&lt;b&gt;&amp;#x3c;",
    "\u202eright to left\u2066",
    "nul \x00 bell \x07 escape \x1b[31m",
    "{{7*7}} ${7*7} <!-- ]]>",
    "",
    "x" * 100_000,
]


def _naughty() -> list[str]:
    return json.loads(NAUGHTY.read_text()) if NAUGHTY.exists() else []


@pytest.mark.parametrize("names", [HOSTILE, _naughty() or HOSTILE], ids=["ours", "naughty"])
def test_what_strangers_named_is_shown_and_does_nothing(names: list[str], tmp_path: Path) -> None:
    """Every text of every table is hostile, and every number is one that nobody expects."""
    odd = (0.0, -1.0, 1e300, float("nan"), float("inf"), None, 5e-324, 3.5)

    def rows(table: str) -> list[dict[str, object]]:
        made = []
        for number in range(60):
            row: dict[str, object] = {}
            for at, column in enumerate(TABLES[table]):
                kind, pick = str(column.type), names[(number * 7 + at) % len(names)]
                if kind == "string":
                    row[column.name] = pick
                elif kind == "double":
                    row[column.name] = odd[(number + at) % len(odd)]
                elif kind in ("int64", "int32"):
                    row[column.name] = (number * 3) % 11
                elif kind.startswith("timestamp"):
                    row[column.name] = START + timedelta(days=number % 9)
                elif kind == "list<element: string>":
                    row[column.name] = [pick, pick]
                elif column.name == "histogram":
                    row[column.name] = [{"low_s": 1.0, "high_s": float(number), "count": number}]
                elif column.name == "reasons":
                    row[column.name] = [{"reason": pick, "count": 3}]
            made.append(row)
        return made

    tables = publish(tmp_path, {table: rows(table) for table in TABLES})

    html = report(tables, title=names[0], now=NOW)

    page = Page(html)
    assert page.open == []
    assert {name for name, _ in page.elements} <= KNOWN_ELEMENTS
    used = {attribute for _, attributes in page.elements for attribute in attributes}
    assert not {name for name in used if name.startswith("on") or name == "style"}
    assert all(each["href"] in {f"#{key}" for key in SECTIONS} for each in page.named("a"))
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", html)
    assert not re.search(r'="(nan|inf|-?inf)"', html)
    assert len(html) < 3_000_000


KNOWN_ELEMENTS = {
    *("html", "head", "meta", "title", "style", "body", "header", "nav", "main", "section"),
    *("h1", "h2", "p", "ul", "li", "a", "div", "b", "span", "small", "strong", "code", "br"),
    *("figure", "figcaption", "details", "summary", "table", "thead", "tbody", "tr", "th", "td"),
    *("svg", "g", "rect", "line", "text", "path", "circle", "polygon"),
}


def test_a_year_of_a_busy_site_is_a_page_in_two_seconds(tmp_path: Path) -> None:
    tables = publish(tmp_path, year(runs=3_000, hosts=50, days=365))
    began = time.process_time()

    html = report(tables, now=NOW)

    # Of a processor, over all threads: a machine may have other things to do as well.
    assert time.process_time() - began < 3
    assert len(html) < 2_000_000


def test_a_text_is_escaped_in_elements_and_in_attributes() -> None:
    made = tag("p", "<b>", tag("i", "&"), title='"<x>"')

    assert made == '<p title="&quot;&lt;x&gt;&quot;">&lt;b&gt;<i>&amp;</i></p>'
    assert text("\u202e") == r"\u202e"


def test_numbers_are_said_as_people_say_them() -> None:
    assert [duration(each) for each in (0.004, 1.44, 200, 7_500, 273_600)] == [
        *("4 ms", "1.4 s", "3 min 20 s", "2 h 5 min", "3 d 4 h")
    ]
    assert [hours(each) for each in (60, 5_400, 3.6e6)] == ["< 0.1 h", "1.5 h", "1,000 h"]
    assert [share(1, whole) for whole in (3, 40, 100_000, 0)] == ["33 %", "2.5 %", "< 0.1 %", "–"]
    assert [count(each) for each in (999, 48_213, 48_213_377)] == ["999", "48,213", "48.2 M"]
    assert [ratio(each) for each in (1.0, 1.32, 2.4, 0.9)] == [
        *("as before", "32 % slower", "2.4 times slower", "10 % faster")
    ]


def test_axes_end_at_round_numbers_and_a_period_has_a_limit() -> None:
    assert ceiling(59, 4) == (60, [0, 20, 40, 60])
    assert log_seconds_ticks(0.5, 7_200, 5) == [1.0, 10.0, 60.0, 600.0, 3_600.0]
    for days in (0, 1, 3, 30, 365, 40_000):
        span = time_buckets(START, START + timedelta(days=days), 60)
        assert 1 <= span.count <= 60
        assert span.start <= START < span.end
        assert span.end > START + timedelta(days=days)


@pytest.mark.parametrize("groups", [0, 1, 2, 7, 100])
def test_a_sample_reaches_every_part_of_a_table_once(groups: int) -> None:
    assert sorted(_spread(groups)) == list(range(groups))


# How the three kinds of colour blindness see linear RGB: Machado, Oliveira, Fernandes (2009).
SEEN_BY = {
    "all": np.eye(3),
    "protan": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    "deutan": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
    "tritan": [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]],
}
TO_XYZ = [[0.4339, 0.3762, 0.1899], [0.2126, 0.7152, 0.0722], [0.0177, 0.1095, 0.8730]]


def _lab(colour: str, eye: str) -> np.ndarray:
    part = np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    linear = np.where(part <= 0.04045, part / 12.92, ((part + 0.055) / 1.055) ** 2.4)
    white = np.array(TO_XYZ) @ np.clip(np.array(SEEN_BY[eye]) @ linear, 0, 1)
    x, y, z = np.where(white > 0.008856, np.cbrt(white), 7.787 * white + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("eye", SEEN_BY)
def test_the_colours_of_a_plot_can_be_distinguished_by_every_eye(eye: str) -> None:
    style = files("tocsin.cli.report").joinpath("style.css").read_text()
    palettes = re.findall("; ".join(rf"--c{number}: (#\w{{6}})" for number in range(5)), style)

    assert len(palettes) == 3  # light, dark and print
    for palette in palettes:
        for one, other in combinations(palette, 2):
            assert np.linalg.norm(_lab(one, eye) - _lab(other, eye)) > 20, (one, other)
