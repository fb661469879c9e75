"""Serve the app on this machine only."""

from __future__ import annotations

import logging
import socket
from typing import TYPE_CHECKING

from hlotrace.errors import HlotraceError

if TYPE_CHECKING:
    from collections.abc import Callable

    from dash import Dash

HOST = "127.0.0.1"
DEFAULT_PORT = 8050


def listening_socket(port: int | None = None) -> socket.socket:
    """A socket that listens on `port`; where none is asked for on the default one, or any where that is taken.

    Raises:
        HlotraceError: the port that was asked for is taken or not allowed.
    """
    if port is not None and not 0 <= port <= 65535:
        raise HlotraceError(f"expected a port from 0 to 65535, found {port}", place="--port")
    for number in (port,) if port is not None else (DEFAULT_PORT, 0):
        made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            made.bind((HOST, number))
            made.listen(128)
            return made
        except OSError as error:
            made.close()
            reason = error.strerror or str(error)
    raise HlotraceError(
        f"port {port} cannot be used: {reason}", place="--port", remedy="Leave --port out to get a free one."
    )


def serve(app: Dash, port: int | None = None, announce: Callable[[str], None] = print) -> None:
    """Serve until Ctrl-C; `announce` gets the URL when it can be opened.

    Raises:
        HlotraceError: the port that was asked for is taken.
    """
    from werkzeug.serving import make_server

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    with listening_socket(port) as ours:
        number = ours.getsockname()[1]
        server = make_server(HOST, number, app.server, threaded=True, fd=ours.fileno())
        try:
            announce(f"http://{HOST}:{number}/")
            server.serve_forever()
        except KeyboardInterrupt:
            pass
        finally:
            server.server_close()
