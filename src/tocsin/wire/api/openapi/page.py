"""The API as a page for people, made from the OpenAPI document: no script, nothing is loaded."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html import escape
from typing import Any

STYLE = (
    ":root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;"
    "margin:2rem auto;padding:0 1rem}code,pre{font:14px/1.45 ui-monospace,monospace}"
    "details{border:1px solid #8886;border-radius:.4rem;margin:.35rem 0}summary{cursor:pointer;"
    "padding:.45rem .75rem}summary b{display:inline-block;min-width:5.25rem;color:#06c}"
    "summary span{opacity:.75;margin-left:.75rem}details>div{padding:0 .75rem .75rem}"
    "table{border-collapse:collapse}td,th{text-align:left;vertical-align:top;"
    "padding:.15rem 1.25rem .15rem 0}pre{overflow:auto;padding:.75rem;border:1px solid #8886}"
    "th{font-weight:normal;opacity:.75}h4{margin:.75rem 0 .25rem}td table td{padding-top:0}"
    "h2{margin-top:2rem}nav a{margin-right:1rem;white-space:nowrap}"
    "@media(prefers-color-scheme:dark){summary b,a{color:#6bf}}"
)

TITLES = {
    "gma": "Producers and consumers (Grid Forum performance events)",
    "deadletters": "Dead letters",
    "boxes": "Message boxes",
    "directory": "Directory of producers and consumers",
    "runs": "Workflow runs",
    "activities": "Activity types",
    "api": "OpenLineage",
    "ingest": "Messages of workflow engines",
    "operation": "Health, status and documents",
}
"""Where the first part of a path, with a capital, would not do as a heading."""

OPERATION = frozenset(
    ("", "livez", "readyz", "clock", "metrics", "status", "errors", "docs", "openapi", "asyncapi")
)
"""First parts of paths that are one group: what an operator asks for."""


def page(document: dict[str, Any]) -> str:
    """The whole page; operations in groups by the first part of their path."""
    info, shared = document["info"], document["components"]["responses"]
    groups: dict[str, list[str]] = {}
    for path, methods in document["paths"].items():
        first = re.split(r"[.-]", path.split("/")[1])[0]
        group = "operation" if first in OPERATION else first
        groups.setdefault(group, []).extend(_operations(path, methods, shared))
    groups["operation"] = groups.pop("operation", [])  # last: most readers look for events
    titles = {name: escape(TITLES.get(name, name.capitalize())) for name in groups}
    contents = "".join(f'<a href="#{name}">{title}</a> ' for name, title in titles.items())
    parts = "".join(
        f'<h2 id="{name}">{titles[name]}</h2>{"".join(each)}' for name, each in groups.items()
    )
    # The id is inside: a browser opens the details around what a link leads to.
    schemas = "".join(
        f"<details><summary><code>{escape(name)}</code></summary>"
        f'<div id="{escape(name)}"><pre>{escape(json.dumps(schema, indent=2))}</pre></div>'
        "</details>"
        for name, schema in sorted(document["components"]["schemas"].items())
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(info['title'])} API</title><style>{STYLE}</style></head><body>"
        f"<h1>{escape(info['title'])} API {escape(info['version'])}</h1>"
        f'<p>{escape(info["description"])} The same for programs: <a href="openapi.json">'
        f"openapi.json</a>.</p><nav>{contents}</nav>{parts}<h2>Schemas</h2>{schemas}</body></html>"
    )


def _operations(path: str, methods: dict[str, Any], shared: dict[str, Any]) -> Iterator[str]:
    for method, operation in methods.items():
        yield (
            f"<details><summary><b>{method.upper()}</b><code>{escape(path)}</code>"
            f"<span>{escape(operation['summary'])}</span></summary>"
            f'<div id="{escape(operation["operationId"])}">'
            f"{_parameters(operation)}{_body(operation)}{_responses(operation, shared)}"
            "</div></details>"
        )


def _parameters(operation: dict[str, Any]) -> str:
    rows = "".join(
        f"<tr><td><code>{escape(each['name'])}</code></td><td>{escape(each['in'])}</td>"
        f"<td>{escape(_kind(each.get('schema', {})))}</td>"
        f"<td>{escape(each.get('description', ''))}</td></tr>"
        for each in operation.get("parameters", ())
    )
    head = "<tr><th>name</th><th>in</th><th>type</th><th>meaning</th></tr>"
    return f"<h4>Parameters</h4><table>{head}{rows}</table>" if rows else ""


def _kind(schema: dict[str, Any]) -> str:
    """The type of a parameter: its values if they are few, else its type and its limits."""
    if "enum" in schema:
        return " | ".join(str(each) for each in schema["enum"])
    name = str(schema.get("type", ""))
    if "minimum" in schema and "maximum" in schema:
        return f"{name}, {schema['minimum']} to {schema['maximum']}"
    return name


def _body(operation: dict[str, Any]) -> str:
    content = operation.get("requestBody", {}).get("content", {})
    rows = "".join(_content(kind, each) for kind, each in content.items())
    return f"<h4>Request body</h4><table>{rows}</table>" if rows else ""


def _responses(operation: dict[str, Any], shared: dict[str, Any]) -> str:
    rows = ""
    for status, named in sorted(operation["responses"].items()):  # `default` after the numbers
        answer = shared[named["$ref"].rpartition("/")[2]] if "$ref" in named else named
        content = "".join(_content(kind, each) for kind, each in answer.get("content", {}).items())
        rows += (
            f"<tr><td><code>{escape(status)}</code></td><td>{escape(answer['description'])}</td>"
            f"<td><table>{content}</table></td></tr>"
        )
    return f"<h4>Responses</h4><table>{rows}</table>"


def _content(kind: str, described: dict[str, Any]) -> str:
    schema = described.get("schema", {})
    many = "array of " if "items" in schema else ""
    name = str(schema.get("items", schema).get("$ref", "")).rpartition("/")[2]
    link = f'{many}<a href="#{escape(name)}">{escape(name)}</a>' if name else ""
    return f"<tr><td><code>{escape(kind)}</code></td><td>{link}</td></tr>"
