"""Serves a live page on this machine alone: three answers from memory, to GET and HEAD.

The address holds a secret, because every user of a machine can reach its loopback. No path of a
request is ever looked up in the file system.
"""

import json
import re
import secrets
import socketserver
import sys
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from rollin.cli.watch_page import Page
from rollin.errors import RollinError, reason
from rollin.report.live import live_policy
from rollin.runs.systems import REUSES_ADDRESS

LOOPBACK = "127.0.0.1"
HOSTS = re.compile(r"(127\.0\.0\.1|localhost)(:[0-9]{1,5})?", re.IGNORECASE)
"""Names that a request may call us by: that of another site leads here by a trick of its DNS. The
port may be another's, such as that of an ssh tunnel."""
METHODS = ("GET", "HEAD")
PATIENCE = 10.0  # seconds that a request may take to come in


class Server(ThreadingHTTPServer):
    """Answers with what `page` gives at that moment."""

    daemon_threads = True
    allow_reuse_address = REUSES_ADDRESS

    def __init__(self, page: Callable[[], Page], port: int = 0) -> None:
        self.page = page
        self.secret = secrets.token_urlsafe(12)
        self.policy = live_policy()
        try:
            super().__init__((LOOPBACK, port), Handler)
        except OSError as error:
            raise RollinError(
                f"--port {port} cannot be opened: {reason(error)}. Give another, or 0 for a free "
                "one."
            ) from error

    def server_bind(self) -> None:
        """Bind, without asking the network for our name as HTTPServer does."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = LOOPBACK, self.server_address[1]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that went away in the middle of an answer is no error of ours."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)

    @property
    def address(self) -> str:
        """Where the page is."""
        return f"http://{LOOPBACK}:{self.server_port}/{self.secret}/"

    def answer(self, path: str) -> tuple[str, str] | None:
        """Kind and text of what there is at a path, or None."""
        page = self.page()
        if path == f"/{self.secret}/":
            return "text/html", page.whole
        if path == f"/{self.secret}/progress":
            return "text/html", page.progress
        if path == f"/{self.secret}/version":
            return "application/json", json.dumps(page.version)
        return None


class Handler(BaseHTTPRequestHandler):
    """One request."""

    server: Server  # pyright: ignore[reportIncompatibleVariableOverride]
    timeout = PATIENCE

    def parse_request(self) -> bool:
        """Refuse what is not for us before anything else is done with it."""
        if not super().parse_request():
            return False
        hosts = self.headers.get_all("Host", [])
        if len(hosts) != 1 or not HOSTS.fullmatch(hosts[0].strip()):
            self._refuse(HTTPStatus.FORBIDDEN, "This page answers to 127.0.0.1 and localhost.")
        elif self.command not in METHODS:
            self._refuse(HTTPStatus.METHOD_NOT_ALLOWED, "This page can only be read.")
        else:
            return True
        return False

    def do_GET(self) -> None:
        """Answer from memory."""
        found = self.server.answer(self.path.partition("?")[0])
        if found is None:
            self._refuse(HTTPStatus.NOT_FOUND, "Open the address that rollin watch has printed.")
        else:
            self._send(HTTPStatus.OK, *found)

    def do_HEAD(self) -> None:
        """The same, without the text."""
        self.do_GET()

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What the parser of requests refuses."""
        self._refuse(HTTPStatus(code), "This is no request that rollin watch understands.")

    def _refuse(self, status: HTTPStatus, sentence: str) -> None:
        self._send(status, "text/plain", f"{sentence}\n")

    def _send(self, status: HTTPStatus, kind: str, text: str) -> None:
        data = text.encode(errors="replace")
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Content-Security-Policy", self.server.policy)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("X-Frame-Options", "DENY")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        self.send_header("Cross-Origin-Opener-Policy", "same-origin")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("Cache-Control", "no-store")
        if status == HTTPStatus.METHOD_NOT_ALLOWED:
            self.send_header("Allow", ", ".join(METHODS))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def version_string(self) -> str:
        """Who answers, without versions."""
        return "rollin"

    def log_message(self, format: str, *args: Any) -> None:
        """The terminal is the user's."""
