"""Scripts and styles of the dashboard's own, under addresses that change with their content."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib import resources

from plotly.offline import get_plotlyjs
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

_PLOTLY = "plotly.min.js"
_PACKAGES = {
    "report.css": "hpsearch.report",
    "report.js": "hpsearch.report",
    "dashboard.css": "hpsearch.pages",
    "live.js": "hpsearch.pages",
}
"""Files of ours that pages name, and the packages that have them in `static/`."""
_KEPT = "private, max-age=31536000, immutable"
"""For how long a browser may keep a file, in seconds."""


def file_address(name: str) -> str:
    """Where pages find a file."""
    return f"/files/{_digest(name)}/{name}"


def own_file(request: Request) -> Response:
    """Answer with a file.

    Raises:
        HTTPException: The dashboard has no file of this name.
    """
    name = request.path_params["name"]
    if name != _PLOTLY and name not in _PACKAGES:
        raise HTTPException(404)
    kind = "text/css" if name.endswith(".css") else "text/javascript"
    return Response(_content(name), media_type=kind, headers={"Cache-Control": _KEPT})


@cache
def _content(name: str) -> bytes:
    if name == _PLOTLY:
        script: str = get_plotlyjs()
        return script.encode()
    return resources.files(_PACKAGES[name]).joinpath("static", name).read_bytes()


@cache
def _digest(name: str) -> str:
    return hashlib.sha256(_content(name)).hexdigest()[:16]
