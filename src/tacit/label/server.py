"""The page of `tacit label`: a server for this machine alone.

It listens on 127.0.0.1, and answers only below a random path. Requests with another Host header (DNS rebinding), posts
from pages of other origins (cross-site requests), and large posts are refused. No path of a request reaches the file
system: photos are asked for by number. The page loads nothing from elsewhere.
"""

from __future__ import annotations

import json
import secrets
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tacit.data.parameters import reason
from tacit.label.session import Session

HOST = "127.0.0.1"
MAX_POST = 64 * 1024
"""Bytes of the largest answer."""

PATIENCE = 30.0
"""Seconds after which a connection that sends nothing is closed."""

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}

FILES = {
    "": ("page.html", "text/html; charset=utf-8"),
    "page.js": ("page.js", "text/javascript; charset=utf-8"),
    "editors.js": ("editors.js", "text/javascript; charset=utf-8"),
    "page.css": ("page.css", "text/css; charset=utf-8"),
}

PICTURES = {"image": "picture", "regions": "region_map"}
"""Pictures of items by the folder of their address, and the method of a task that draws them."""


class Refused(Exception):
    """A request that is not answered: a status and a reason."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


class LabelServer(ThreadingHTTPServer):
    """Serves a session. ``address`` is what to open in a browser; a port of 0 takes a free one."""

    daemon_threads = True

    def __init__(self, session: Session, port: int = 0) -> None:
        self.session = session
        self.token = secrets.token_urlsafe(24)
        super().__init__((HOST, port), _Handler)

    @property
    def hosts(self) -> tuple[str, str]:
        """What browsers on this machine may call it."""
        return f"{HOST}:{self.server_port}", f"localhost:{self.server_port}"

    @property
    def address(self) -> str:
        return f"http://{HOST}:{self.server_port}/{self.token}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing where a browser went away."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: LabelServer
    server_version, sys_version = "tacit", ""
    timeout = PATIENCE

    def do_GET(self) -> None:
        self._answer(self._get)

    def do_POST(self) -> None:
        self._answer(self._post)

    def _answer(self, method: Any) -> None:
        try:
            content, kind = method(self._path())
            self._send(200, content, kind)
        except Refused as refused:
            self._refuse(refused.status, str(refused))
        except Exception as error:  # such as a full disk, or a photo that was removed
            self._refuse(500, reason(error))

    def _refuse(self, status: int, why: str) -> None:
        self.close_connection = True
        self._send(status, json.dumps({"error": why}).encode(), "application/json")

    def _send(self, status: int, content: bytes, kind: str) -> None:
        self.send_response(status)
        for name, value in {**HEADERS, "Content-Type": kind, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(content)

    def _path(self) -> str:
        """What follows the token in the address; refused without it, or under another host."""
        is_absolute = not self.path.startswith("/")  # as sent to a proxy: another host may be in it
        if is_absolute or self.headers.get_all("Host") not in [[host] for host in self.server.hosts]:
            raise Refused(403, "the Host header must be that of this page")
        token, _, rest = urlsplit(self.path).path.lstrip("/").partition("/")
        if not secrets.compare_digest(token.encode(), self.server.token.encode()):
            raise Refused(404, "open the address that tacit label printed")
        return rest

    def _get(self, path: str) -> tuple[bytes, str]:
        session = self.server.session
        if path in FILES:
            name, kind = FILES[path]
            return resources.files("tacit.label").joinpath(name).read_bytes(), kind
        if path == "task":
            return _json({"name": session.task.name, "quality": session.task.quality_name, **session.task.describe()})
        if path == "state":
            wanted = parse_qs(urlsplit(self.path).query).get("item", [""])[0]
            return _json(session.state(self._item(wanted)))
        folder, _, number = path.partition("/")
        draw = getattr(session.task, PICTURES[folder], None) if folder in PICTURES else None
        item = self._item(number)
        if draw is None or item is None:
            raise Refused(404, "there is nothing here")
        content = draw(item)
        return content, "image/png" if content[1:4] == b"PNG" else "image/jpeg"

    def _item(self, number: str) -> int | None:
        """The number of an item in an address; None for anything else."""
        is_number = number.isascii() and number.isdigit() and len(number) < 10
        return int(number) if is_number and int(number) < len(self.server.session.task.items) else None

    def _post(self, path: str) -> tuple[bytes, str]:
        content = self._read_post()
        session = self.server.session
        try:
            if path == "answer":
                session.answer(content.get("item"), content.get("kind"), content.get("answer"))
                return _json(session.state())
            if path == "undo":
                item = session.undo(content.get("item"))
                return _json({"item": item, **session.state(item)})
        except (ValueError, TypeError) as error:
            raise Refused(400, reason(error)) from error
        raise Refused(404, "there is nothing here")

    def _read_post(self) -> dict[str, Any]:
        """The JSON object of a post from the page itself; anything else is refused before it is read."""
        origins = [f"http://{host}" for host in self.server.hosts]
        if self.headers.get_all("Origin") not in [[origin] for origin in origins]:
            raise Refused(403, "answers are taken from this page alone")
        if self.headers.get("Sec-Fetch-Site", "same-origin") != "same-origin":
            raise Refused(403, "answers are taken from this page alone")
        if self.headers.get_content_type() != "application/json":
            raise Refused(415, "an answer must be JSON")
        length = ",".join(self.headers.get_all("Content-Length", []))  # two of them are not a number
        if self.headers.get("Transfer-Encoding") or not (length.isascii() and length.isdigit()):
            raise Refused(411, "an answer must say how long it is")
        if len(length) > 9 or int(length) > MAX_POST:
            raise Refused(413, f"an answer must have at most {MAX_POST} bytes")
        try:
            content = json.loads(self.rfile.read(int(length)))
        except (ValueError, RecursionError) as error:
            raise Refused(400, "an answer must be JSON") from error
        if not isinstance(content, dict):
            raise Refused(400, "an answer must be a JSON object")
        return content

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing: addresses hold the token."""


def _json(content: Any) -> tuple[bytes, str]:
    return json.dumps(content, allow_nan=False).encode(), "application/json"
