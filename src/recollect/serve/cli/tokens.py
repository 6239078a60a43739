"""Commands about the tokens of the HTTP door: create, list, revoke; the file they change is the guard's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from recollect.clock import SystemClock
from recollect.config import load_settings
from recollect.errors import InputError
from recollect.opening import settings_of
from recollect.serve.cli.output import age, complain, print_json, safe, table
from recollect.serve.cli.session import wants_json
from recollect.serve.http.tokens import token_file

if TYPE_CHECKING:
    from argparse import Namespace
    from datetime import datetime

    from recollect.serve.http.tokens import TokenRecord


def token(options: Namespace) -> int:
    """Do what is asked with tokens."""
    actions = {"create": create, "list": list_them, "revoke": revoke}
    if options.action not in actions:
        msg = f"say what to do with tokens: {', '.join(actions)}"
        raise InputError(msg)
    return actions[options.action](options)


def create(options: Namespace) -> int:
    """Create a token and print its secret, for the only time."""
    settings = settings_of(None, getattr(options, "workspace", None), None)
    record, secret = token_file(settings.server.tokens).create(
        settings.workspace, options.role, options.label, SystemClock().now(), options.days
    )
    if wants_json(options):
        print_json({"id": record.id, "token": secret, "role": record.role, "workspace": record.workspace})
    else:
        print(secret)
    until = "" if record.expires_at is None else f" until {record.expires_at:%Y-%m-%d}"
    complain(f"token {record.id} may {record.role} in workspace {record.workspace}{until}; it is shown this once, so keep it now")
    return 0


def list_them(options: Namespace) -> int:
    """List the tokens, those of one workspace if it is named; never their secrets."""
    named = getattr(options, "workspace", None)
    settings = settings_of(None, named, None)
    now = SystemClock().now()
    found = [record for record in token_file(settings.server.tokens).list() if named is None or record.workspace == settings.workspace]
    if wants_json(options):
        print_json([_shown(record, now) for record in found])
    elif found:
        rows = [
            (record.id, record.role, _state(record, now), age(record.created_at, now), record.workspace, record.label or "")
            for record in found
        ]
        table(("id", "role", "state", "created", "workspace", "label"), rows, stretch=5)
    else:
        print("There are no tokens. `recollect token create --role write` makes one.")
    return 0 if found else 1


def revoke(options: Namespace) -> int:
    """Revoke a token; a server that runs refuses it from its next request on."""
    if options.id is None:
        msg = "say which token to revoke: `recollect token list` shows their ids"
        raise InputError(msg)
    is_known = token_file(load_settings().server.tokens).revoke(options.id)
    if wants_json(options):
        print_json({"id": options.id, "revoked": is_known})
    elif is_known:
        print(f"Revoked {safe(options.id)}.")
    else:
        complain(f"there is no token {options.id}: `recollect token list` shows them")
    return 0 if is_known else 1


def _state(record: TokenRecord, now: datetime) -> str:
    if record.revoked:
        return "revoked"
    if not record.holds(now):
        return "expired"
    return "valid" if record.expires_at is None else f"until {record.expires_at:%Y-%m-%d}"


def _shown(record: TokenRecord, now: datetime) -> dict[str, Any]:
    return {
        "id": record.id,
        "role": record.role,
        "workspace": record.workspace,
        "label": record.label,
        "created_at": record.created_at,
        "expires_at": record.expires_at,
        "revoked": record.revoked,
        "valid": record.holds(now),
    }
