"""Attributes of resources and of directory entries, as JSON has them."""

from __future__ import annotations

import pytest

from tocsin.errors import BadDiscovery, BadRegistration
from tocsin.event.value import Quantity
from tocsin.wire.api.resource_request import read_values
from tocsin.wire.directory.registration import read_registration

ENTRY = {"kind": "producer", "name": "uptime", "host": "node7"}

REFUSED = {
    "no attribute name": {"1st": 1},
    "a list": {"system": ["Linux"]},
    "a long text": {"system": "x" * 1_025},
    "a long unit": {"memory": {"value": 2, "unit": "x" * 1_025}},
    "a large number": {"cores": 2**63},
    "too many": {f"a{number}": number for number in range(257)},
}


def test_a_value_is_a_text_a_number_a_switch_or_a_quantity() -> None:
    given = {"system": "Linux", "cores": 8, "load": 0.5, "gpu": True}

    assert read_values(given) == given
    assert read_values({"memory": {"value": 2, "unit": "GB"}}) == {"memory": Quantity(2, "GB")}


@pytest.mark.parametrize("given", REFUSED.values(), ids=REFUSED)
def test_what_is_no_attribute_is_refused_by_both(given: dict[str, object]) -> None:
    with pytest.raises(BadDiscovery, match="attributes"):
        read_values(given)
    with pytest.raises(BadRegistration, match="attributes"):
        read_registration({**ENTRY, "attributes": given})
