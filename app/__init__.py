"""The Dash app: `create_app` over opened tables, `serve` on this machine only."""

from __future__ import annotations

from hlotrace.app.factory import create_app
from hlotrace.app.server import serve

__all__ = ["create_app", "serve"]
