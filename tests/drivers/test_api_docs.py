"""The description of the API: complete, with ids, and readable as a page."""

from __future__ import annotations

import http.client
import re
from unittest.mock import MagicMock

from served import served
from tocsin.drivers.http.rest.app import application
from tocsin.wire.api.openapi.document import description


def test_every_operation_has_an_id_of_its_own_and_a_summary() -> None:
    document = description()
    operations = [each for methods in document["paths"].values() for each in methods.values()]
    ids = [each["operationId"] for each in operations]

    assert len(ids) == len(set(ids))
    assert all(each.isidentifier() for each in ids)
    assert all(each["summary"] for each in operations)
    assert document["servers"]
    assert document["info"]["description"]


def test_every_parameter_says_what_it_means() -> None:
    silent = [
        f"{method} {path} {parameter['name']}"
        for path, methods in description()["paths"].items()
        for method, operation in methods.items()
        for parameter in operation.get("parameters", ())
        if not parameter.get("description")
    ]

    assert silent == []


SOAP = ("/soap", "/axis2/", "/onvif/", "/wsman")  # their own documents describe them: WSDL


def test_every_route_is_described_and_everything_described_is_a_route() -> None:
    app = application(MagicMock(), MagicMock())  # only asked for its table of routes
    routes = {
        (method.lower(), re.sub(r":\w+", "", route.path))  # type: ignore[attr-defined]
        for route in app.routes  # type: ignore[attr-defined]
        for method in route.methods
        if method != "HEAD" and not route.path.startswith(SOAP)
    }
    described = {(method, path) for path, each in description()["paths"].items() for method in each}

    assert routes == described


def test_the_api_is_shown_as_a_page_that_loads_nothing() -> None:
    with served() as broker:
        host, _, port = broker.address.rpartition(":")
        connection = http.client.HTTPConnection(host, int(port), timeout=30)
        connection.request("GET", "/docs")
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        document = broker.call("GET", "/openapi.json")[1]
        paths, schemas = document["paths"], document["components"]["schemas"]

    assert answer.status == 200
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert all(f"<code>{path}</code>" in text for path in paths)
    for forbidden in ("<script", "http://", "https://", " src="):
        assert forbidden not in text.replace("http://127.0.0.1", "")
    links = set(re.findall(r'href="#([^"]+)"', text))
    assert links <= set(re.findall(r' id="([^"]+)"', text))
    assert "Problem" in links & set(schemas)  # what an error looks like is one click away
    # A browser opens the details around the target of a link, not details that are the target.
    assert "<details id=" not in text
