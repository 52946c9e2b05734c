"""Run by the Python that has roc-validator: CONTEXTS.json, then pairs of a profile and a crate.

Prints the REQUIRED issues as JSON, a list for each crate. Contexts come from the file, so that no
network is needed; everything else that would be fetched fails as it does without one.
"""

import io
import json
import sys
from pathlib import Path

import requests
from requests.adapters import HTTPAdapter
from rocrate_validator import models, services
from urllib3 import HTTPResponse

contexts = json.loads(Path(sys.argv[1]).read_text())


def send(self, request, **_):  # type: ignore[no-untyped-def]
    if request.url not in contexts:
        raise requests.ConnectionError(request.url)
    body = io.BytesIO(json.dumps(contexts[request.url]).encode())
    headers = {"Content-Type": "application/ld+json"}
    answer = HTTPResponse(body=body, status=200, headers=headers, preload_content=False)
    return self.build_response(request, answer)


HTTPAdapter.send = send
found = []
for profile, crate in zip(sys.argv[2::2], sys.argv[3::2], strict=True):
    settings = services.ValidationSettings(
        rocrate_uri=crate,
        profile_identifier=profile,
        requirement_severity=models.Severity.REQUIRED,
        no_cache=True,
    )
    issues = services.validate(settings).get_issues()
    found.append([f"{issue.check.identifier}: {issue.message}" for issue in issues])
print(json.dumps(found))
