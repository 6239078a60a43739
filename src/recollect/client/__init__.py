"""What an engine did → a Recollect server; this folder needs nothing but the standard library, and can be copied alone.

    with Client() as client, client.request(project_id="shop", chat_id="c1") as request:
        request.user("Fix login")
        with request.tool_call("update_textdoc", {"path": "src/auth.py"}) as call:
            call.result(edit(), success=True)
        request.assistant("Done", model="m")

Recording never raises into the caller's work, unless `raises=True` asks for it. Nothing is ever written to disk: what could
not be delivered is let go, and only its ids are kept, in `Client.failed`. Sending again is harmless: the server knows the ids.
"""

from __future__ import annotations

from .client import Client
from .lane import Undelivered
from .recording import ChangeFields, CheckpointFields, ContextFields, Request, ToolCall
from .server import ClientError

__all__ = ["ChangeFields", "CheckpointFields", "Client", "ClientError", "ContextFields", "Request", "ToolCall", "Undelivered"]
