# /// script
# requires-python = ">=3.11"
# ///
"""Be a sink that events are pushed to: `python examples/webhook_sink.py 5`, for five of them."""

import json
import os
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.request import Request, urlopen

BROKER = os.environ.get("TOCSIN_BROKER", "http://127.0.0.1:8400")
seen: set[str] = set()


class Sink(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        # Delivery is at least once: source and id tell what came before.
        key = f"{self.headers['ce-source']} {self.headers['ce-id']}"
        if key not in seen:
            seen.add(key)
            print(self.headers["ce-topic"], body.decode(errors="replace"), flush=True)
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """The events are output enough."""


server = HTTPServer(("127.0.0.1", 0), Sink)
asked = {"sink": f"http://127.0.0.1:{server.server_port}/", "filters": [{"topic": "lead/**"}]}
json_type = {"content-type": "application/json"}
request = Request(f"{BROKER}/subscriptions", json.dumps(asked).encode(), json_type)
subscription = json.load(urlopen(request))["id"]
print("subscribed as", subscription, file=sys.stderr, flush=True)
while len(seen) < int(sys.argv[1]):
    server.handle_request()
urlopen(Request(f"{BROKER}/subscriptions/{subscription}", method="DELETE")).close()
