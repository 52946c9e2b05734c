"""Does one filter cover another, do they meet, can one ever match? (paper 001)

The answers are safe. `covers` says yes only if every event that passes the narrow filter passes the
wide one; `intersects` and `never_matches` say that there is no such event only if there is none.
For conjunctions with one interval for each attribute they are exact. Where a filter is too much
(SQL, or more than BOXES_MAX alternatives) they give the answer that costs only an opportunity.
"""

from __future__ import annotations

from tocsin.event.filter import Filter
from tocsin.matching.boxes import box_covers, boxes, inhabited_boxes, meet


def covers(wide: Filter, narrow: Filter) -> bool:
    """True only if every event that passes `narrow` also passes `wide`."""
    if wide == narrow:
        return True
    outer, inner = boxes(wide), inhabited_boxes(narrow)
    if outer is None or inner is None:
        return False
    return all(any(box_covers(each, box) for each in outer) for box in inner)


def intersects(one: Filter, other: Filter) -> bool:
    """False only if no event passes both."""
    ours, theirs = inhabited_boxes(one), inhabited_boxes(other)
    if ours is None or theirs is None:
        return not (never_matches(one) or never_matches(other))
    return any(meet(each, another) for each in ours for another in theirs)


def never_matches(wanted: Filter) -> bool:
    """True only if no event can pass: its conditions contradict each other."""
    return inhabited_boxes(wanted) == ()
