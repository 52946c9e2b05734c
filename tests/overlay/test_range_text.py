"""Ranges in words, as people find them beside the values of a static resource."""

from __future__ import annotations

import pytest

from tocsin.overlay.range_text import range_texts
from tocsin.overlay.region_text import parse_region


@pytest.mark.parametrize(
    ("advertised", "expected"),
    [
        ("[system,=,Linux],[cores,=,4]", {}),
        ("[disk,>=,100]", {"disk": ">= 100"}),
        ("[disk,>,100],[disk,<,320.5]", {"disk": "> 100 and < 320.5"}),
        ("[load,<=,0.1]", {"load": "<= 0.1"}),
        ("[load,<,0]", {"load": "< 0"}),
        ("[memory,>=,2 GB]", {"memory": ">= 2000000000 B"}),
        ("[available,>,8 a.m.],[available,<,3 p.m.]", {"available": "08:00 to 15:00 UTC"}),
        ("[available,>,22:00],[available,<,06:00:30]", {"available": "22:00 to 06:00:30 UTC"}),
        ("[available,>=,08:00+02:00]", {"available": "06:00 to 22:00 UTC"}),
        ("[available,=,9:30]", {"available": "09:30 UTC"}),
    ],
)
def test_a_range_is_written_as_a_person_would(advertised: str, expected: dict[str, str]) -> None:
    assert range_texts(parse_region(advertised)) == expected
