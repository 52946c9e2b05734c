"""The resources and requests of the discovery benchmark as ClassAds, HTCondor's matching.

`symmetricMatch` is the matching of `classad2`: the `Requirements` of both ads are evaluated, one
after the other. Asked at the machine, those of the request come first and end most pairs, which is
twice as quick. A constraint alone, without a target, is what a query to HTCondor's collector has
(`condor_status -constraint`): it is no match, and `classad2` evaluates it 25 times as fast.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tocsin.overlay.region import Region

try:
    import classad2
except ImportError:  # it is for Linux alone
    classad2 = None

Ads = Sequence[Any]


def machine_ad(resource: Region) -> Any:
    ad = classad2.ClassAd({"Requirements": True})
    for (name, _), bound in resource.bounds.items():
        ad[name] = bound if isinstance(bound, str) else bound[1]
    return ad


def constraint(request: Region, prefix: str = "") -> Any:
    """The request as an expression; of numbers it may ask for so much or more."""
    conditions = [
        f'{prefix}{name} == "{bound}"'
        if isinstance(bound, str)
        else f"{prefix}{name} >= {bound[0]!r}"
        for (name, _), bound in request.bounds.items()
    ]
    return classad2.ExprTree(" && ".join(conditions))


def request_ad(request: Region) -> Any:
    ad = classad2.ClassAd()
    ad["Requirements"] = constraint(request, "TARGET.")
    return ad


def by_request(requests: Ads, machines: Ads) -> list[int]:
    return [sum(ad.symmetricMatch(machine) for machine in machines) for ad in requests]


def by_machine(requests: Ads, machines: Ads) -> list[int]:
    return [sum(machine.symmetricMatch(ad) for machine in machines) for ad in requests]


def by_constraint(requests: Ads, machines: Ads) -> list[int]:
    return [sum(wanted.eval(machine) is True for machine in machines) for wanted in requests]


def ways_of(requests: Sequence[Region], machines: Ads) -> Mapping[str, Callable[[], list[int]]]:
    """Each way to count what matches each request."""
    ads = [request_ad(each) for each in requests]
    constraints = [constraint(each) for each in requests]
    return {
        "match, request first": lambda: by_request(ads, machines),
        "match, machine first": lambda: by_machine(ads, machines),
        "constraint": lambda: by_constraint(constraints, machines),
    }
