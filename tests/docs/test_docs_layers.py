"""ARCHITECTURE.md shows the layers that the import contracts keep."""

from __future__ import annotations

import re

from docs.layers import ARCHITECTURE, DRAWING, drawing, packages

TEXT = ARCHITECTURE.read_text()


def test_the_layers_are_drawn_as_the_contracts_have_them() -> None:
    drawn = DRAWING.search(TEXT)

    assert drawn
    assert drawn[0] == drawing(), "stale: python tests/docs/layers.py"


def test_every_package_of_the_layers_has_a_line_that_says_what_it_is() -> None:
    table = TEXT.partition("| package | what it is |")[2].partition("\n\n")[0]
    described = set(re.findall(r"^\| `(\w+)` \| \w", table, re.MULTILINE))

    assert described == packages()
