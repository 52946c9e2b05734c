"""Elements as bytes."""

from __future__ import annotations


def element(
    prefix: str, namespace: str, name: str, content: bytes = b"", attributes: bytes = b""
) -> bytes:
    """An element that declares its own prefix, so that it may stand anywhere."""
    tag = f"{prefix}:{name}".encode()
    start = b'<%b xmlns:%b="%b"%b' % (tag, prefix.encode(), namespace.encode(), attributes)
    return b"%b>%b</%b>" % (start, content, tag) if content else start + b"/>"
