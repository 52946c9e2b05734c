"""Workloads of discovery requests with a similarity that is exact, from one source of chance.

Requests drawn at random, as the paper describes them, form one large block: their similarity is
between 0.7 and 1, whatever is drawn. So the share is built. Ten wide requests (roots) are joined to
one block by their intersections (bridges); every narrowed copy of a root joins the block too. Other
requests cover none and are covered by none, and match no resource's values: these are the paper's
invalid requests, which it replaces by covered ones to raise the similarity.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from math import inf
from random import Random

import numpy as np

from tocsin.sim.discovery.boxes import Bounds, Boxes

TAGS = ("a", "b", "c", "d", "e")
VALUE_MAX = 100
TAGS_OF_A_RESOURCE_MIN = 2

ROOTS = 10
REQUESTS_MIN = 10 * 2 * ROOTS  # of a pool: a tenth of them must hold the roots and bridges
ROOT_MATCHES = (20, 120)  # resources whose values a root admits
# Advertisements met, the same for narrowed and for isolated requests: so the mean stays where it is
# when the similarity changes, as the paper claims for its own workloads (figure 7b).
ADVERTISEMENTS_MET = (120, 240)
RANGE_WIDTH_MAX = 6
FOUND_AROUND = (0.9, 1.1)  # of what a request is to find
DRAWS_MAX = 2_000_000  # of one pool; 1,000 requests take some tens of thousands


@dataclass(frozen=True, slots=True)
class ResourcePlan:
    """A resource to register: what it advertises, and its values now."""

    name: str
    advertised: Bounds
    values: dict[str, float]


@dataclass(frozen=True, slots=True)
class Pools:
    """Resources, and the requests from which the workloads of every similarity are taken."""

    tags: tuple[str, ...]
    resources: tuple[ResourcePlan, ...]
    block: tuple[Bounds, ...]  # roots, bridges, narrowed copies: one block from the roots on
    isolated: tuple[Bounds, ...]

    def requests(self, similarity_percent: int, random: Random) -> list[Bounds]:
        """As many requests as each pool has, in any order, of this similarity exactly."""
        related = len(self.isolated) * similarity_percent // 100
        requests = [*self.block[:related], *self.isolated[: len(self.isolated) - related]]
        random.shuffle(requests)
        return requests


class ResourceBoxes:
    """The resources as boxes: which of them a request meets, and which it finds."""

    def __init__(self, resources: Sequence[ResourcePlan]) -> None:
        values = [{tag: (v, v) for tag, v in each.values.items()} for each in resources]
        self._advertised = Boxes.of_resources(TAGS, [each.advertised for each in resources])
        self._values = Boxes.of_resources(TAGS, values)

    def met(self, box: Boxes) -> int:
        return int(self._advertised.meeting(box).sum())

    def found(self, box: Boxes) -> int:
        return int(self._values.meeting(box).sum())


def draw_pools(random: Random, *, resources: int = 1_000, requests: int = 1_000) -> Pools:
    """Everything that the workloads of one seed have in common."""
    assert requests >= REQUESTS_MIN
    registered = draw_resources(random, resources)
    known = ResourceBoxes(registered)
    scale = resources / 1_000
    roots = _draw_roots(random, known, scale)
    bridges = [_intersection(one, other) for one, other in pairwise(roots)]
    covered_by_a_root = partial(_narrowed, random, roots)
    narrowed = _draw(requests, covered_by_a_root, _finds(known, scale))
    block = [*roots, *bridges, *narrowed][:requests]
    isolated = _draw_isolated(random, known, block, requests, scale)
    return Pools(TAGS, tuple(registered), tuple(block), tuple(isolated))


def draw_resources(random: Random, count: int) -> list[ResourcePlan]:
    """Each with two to five tags, a highest value that it advertises, and a value below it."""
    found = []
    for number in range(count):
        chosen = sorted(random.sample(TAGS, random.randint(TAGS_OF_A_RESOURCE_MIN, len(TAGS))))
        highest = {tag: random.randint(1, VALUE_MAX) for tag in chosen}
        found.append(
            ResourcePlan(
                f"R{number + 1:04}",
                {tag: (-inf, float(high)) for tag, high in highest.items()},
                {tag: float(random.randint(1, high)) for tag, high in highest.items()},
            )
        )
    return found


def draw_matching(
    random: Random, resources: Sequence[ResourcePlan], matches: int, count: int
) -> list[Bounds]:
    """Requests that each find so many of the resources, a tenth more or less."""
    known = ResourceBoxes(resources)
    low, high = (matches * share for share in FOUND_AROUND)

    def draw() -> Bounds:
        others = random.sample(TAGS[1:], random.randint(1, 2))
        return {tag: (float(random.randint(1, VALUE_MAX)), inf) for tag in ("a", *sorted(others))}

    return _draw(count, draw, lambda bounds: low <= known.found(_box(bounds)) <= high)


def mean_matches(
    resources: Sequence[ResourcePlan], requests: Sequence[Bounds]
) -> tuple[float, float]:
    """How many advertisements a request meets, and how many resources it finds, on average."""
    known = ResourceBoxes(resources)
    boxes = [_box(each) for each in requests]
    met = sum(known.met(box) for box in boxes)
    return met / len(boxes), sum(known.found(box) for box in boxes) / len(boxes)


def _draw_roots(random: Random, known: ResourceBoxes, scale: float) -> list[Bounds]:
    low, high = (scale * bound for bound in ROOT_MATCHES)
    found: list[Bounds] = []

    def accept(bounds: Bounds) -> bool:
        box = _box(bounds)
        return low <= known.found(box) <= high and _is_incomparable(box, _boxes(found))

    def draw() -> Bounds:
        others = random.sample(TAGS[1:], 2 if random.random() < 0.3 else 1)
        return {tag: (float(random.randint(5, 40)), inf) for tag in ("a", *sorted(others))}

    return _draw(ROOTS, draw, accept, found)


def _narrowed(random: Random, roots: Sequence[Bounds]) -> Bounds:
    """A request that a root covers: higher bounds, now and then a tag more."""
    root = random.choice(roots)
    bounds = {
        tag: (float(random.randint(int(low), VALUE_MAX)), high) for tag, (low, high) in root.items()
    }
    missing = [tag for tag in TAGS if tag not in bounds]
    if random.random() < 0.3:
        bounds[random.choice(missing)] = (float(random.randint(1, 50)), inf)
    return bounds


def _finds(known: ResourceBoxes, scale: float) -> Callable[[Bounds], bool]:
    """Whether a request finds something, and meets about as much as every other."""
    low, high = (scale * bound for bound in ADVERTISEMENTS_MET)

    def accept(bounds: Bounds) -> bool:
        box = _box(bounds)
        return low <= known.met(box) <= high and known.found(box) >= 1

    return accept


def _draw_isolated(
    random: Random, known: ResourceBoxes, block: Sequence[Bounds], count: int, scale: float
) -> list[Bounds]:
    low, high = (scale * bound for bound in ADVERTISEMENTS_MET)
    related = _boxes(block)
    # One row more for each that is found: growing the arrays for each would take longer.
    lo, hi = np.full((2, count, len(TAGS)), np.nan)
    found: list[Bounds] = []

    def accept(bounds: Bounds) -> bool:
        box = _box(bounds)
        if not (low <= known.met(box) <= high) or known.found(box):
            return False
        so_far = Boxes(lo[: len(found)], hi[: len(found)])
        if not (_is_incomparable(box, related) and _is_incomparable(box, so_far)):
            return False
        lo[len(found)], hi[len(found)] = box.lo, box.hi
        return True

    def draw() -> Bounds:
        tags = ("a", *sorted(random.sample(TAGS[1:], random.randint(1, 3))))
        starts = {tag: random.randint(1, VALUE_MAX) for tag in tags}
        return {
            tag: (float(start), float(start + random.randint(0, RANGE_WIDTH_MAX)))
            for tag, start in starts.items()
        }

    return _draw(count, draw, accept, found)


def _draw(
    count: int,
    draw: Callable[[], Bounds],
    accept: Callable[[Bounds], bool],
    found: list[Bounds] | None = None,
) -> list[Bounds]:
    """So many of what is drawn and accepted, in `found`, which `accept` may look at."""
    found = [] if found is None else found
    for _ in range(DRAWS_MAX):
        if len(found) == count:
            return found
        bounds = draw()
        if accept(bounds):
            found.append(bounds)
    raise AssertionError(f"only {len(found)} of {count} requests after {DRAWS_MAX:,} draws")


def _intersection(one: Bounds, other: Bounds) -> Bounds:
    both = {**one, **other}
    for tag in one.keys() & other.keys():
        both[tag] = (max(one[tag][0], other[tag][0]), min(one[tag][1], other[tag][1]))
    return {tag: both[tag] for tag in TAGS if tag in both}


def _is_incomparable(box: Boxes, others: Boxes) -> bool:
    return not (others.covering(box).any() or others.covered_by(box).any())


def _boxes(rows: Sequence[Bounds]) -> Boxes:
    return Boxes.of_requests(TAGS, rows)


def _box(bounds: Bounds) -> Boxes:
    rows = _boxes([bounds])
    return Boxes(rows.lo[0], rows.hi[0])
