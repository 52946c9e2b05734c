"""The peer of the ingest benchmark: Starlette reads the body and answers 202. It stores nothing."""

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route


async def publish(request: Request) -> Response:
    await request.body()
    return Response(status_code=202)


app = Starlette(routes=[Route("/events", publish, methods=["POST"])])
