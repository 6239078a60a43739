"""Commands that take much in: an engine's requests, exported conversations, lists of messages."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from recollect.answers import to_json
from recollect.capture.clean import parse_json
from recollect.errors import InputError, RecollectError, StoreError
from recollect.limits import PAYLOAD_BYTES_MAX
from recollect.serve.cli.output import Progress, complain, count, print_json
from recollect.serve.cli.session import command, read_file, wants_json

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator
    from typing import BinaryIO

    from recollect.memory import Memory

_HEAD_BYTES = 1_048_576


@command
async def ingest(memory: Memory, options: Namespace) -> int:
    """Record an engine's requests, each in its own transaction; bad ones are reported and skipped."""
    outcomes: dict[str, int] = {}
    bad = 0
    progress = Progress("requests")
    with _opened(options.file) as stream:
        for n, (place, payload) in enumerate(payloads(stream), 1):
            try:
                recorded = await memory.record(_checked(payload), replace=options.replace, on_edit=options.on_edit)
            except StoreError:
                raise
            except RecollectError as error:
                bad += 1
                progress.end()
                complain(f"{place}: {error}")
                if wants_json(options):
                    print_json({"place": place, "error": str(error)})
                continue
            outcomes[recorded.status] = outcomes.get(recorded.status, 0) + 1
            for name, times in recorded.notes.items():
                outcomes[name] = outcomes.get(name, 0) + times
            if wants_json(options):
                print_json({"place": place, **cast("dict[str, Any]", to_json(recorded))})
            progress.at(n)
    progress.end()
    if not wants_json(options):
        told = [f"{number:,} {name.replace('_', ' ')}" for name, number in outcomes.items()]
        print(", ".join([*told, *([f"{bad:,} bad"] if bad else [])]) or "nothing to record")
    return 2 if bad else 0


def _checked(payload: Any) -> Any:
    if isinstance(payload, RecollectError):
        raise payload
    return payload


def _opened(name: str) -> BinaryIO:
    if name == "-":
        return sys.stdin.buffer
    try:
        return Path(name).open("rb")
    except OSError as error:
        msg = f"cannot read {name}: {error.strerror or error}"
        raise InputError(msg) from error


def payloads(stream: BinaryIO) -> Iterator[tuple[str, Any]]:
    """Yield each payload, or the error that stands in its place, with where it stands: a document, an array, or JSON lines."""
    first = stream.readline(PAYLOAD_BYTES_MAX)
    while first and not first.strip():
        first = stream.readline(PAYLOAD_BYTES_MAX)
    if not first.strip():
        msg = "there is nothing to read: give a payload, a JSON array or JSON lines of them"
        raise InputError(msg)
    if first.lstrip()[:1] == b"{" and not isinstance(_parsed(first), RecollectError):
        yield from _lines(first, stream)
        return
    rest = stream.read(PAYLOAD_BYTES_MAX)
    whole = _parsed(first + rest)
    if isinstance(whole, list):
        yield from ((f"item {n}", item) for n, item in enumerate(cast("list[Any]", whole), 1))
    elif isinstance(whole, RecollectError) and _looks_like_lines(first + rest):
        yield from ((f"line {n}", _parsed(line)) for n, line in enumerate((first + rest).splitlines(), 1) if line.strip())
    else:
        yield "document", whole


def _lines(first: bytes, stream: BinaryIO) -> Iterator[tuple[str, Any]]:
    n = 1
    line = first
    while line:
        if line.strip():
            yield f"line {n}", _parsed(line)
        line = stream.readline(PAYLOAD_BYTES_MAX)
        n += 1


def _looks_like_lines(text: bytes) -> bool:
    lines = [line for line in text[:_HEAD_BYTES].splitlines() if line.strip()]
    return len(lines) > 1 and sum(line.lstrip()[:1] == b"{" and line.rstrip()[-1:] == b"}" for line in lines) > len(lines) // 2


def _parsed(document: bytes) -> Any:
    try:
        return parse_json(document)
    except RecollectError as error:
        return error


@command
async def import_them(memory: Memory, options: Namespace) -> int:
    """Import conversations."""
    bad = unchanged = 0
    ids: list[str] = []
    for path in options.path:
        try:
            before = (await memory.stats()).turns
            ids.append(await _imported(memory, path, options))
            unchanged += (await memory.stats()).turns == before and not options.replace
        except StoreError:
            raise
        except RecollectError as error:
            bad += 1
            complain(f"{path}: {error}")
    if wants_json(options):
        print_json({"conversations": ids, "unchanged": unchanged, "bad": bad})
    else:
        told = [f"{count(len(ids) - unchanged, 'conversation')} imported"]
        told += [f"{unchanged} unchanged"] if unchanged else []
        print(", ".join([*told, *([f"{bad} bad"] if bad else [])]))
        for conversation_id in ids:
            print(conversation_id)
    return 2 if bad else 0


async def _imported(memory: Memory, path: str, options: Namespace) -> str:
    document = parse_json(read_file(path))
    if options.agent == "recollect":
        return (await memory.import_conversation(document, replace=options.replace, new_id=options.new_id)).id
    if isinstance(document, list):
        document = {"messages": document}
    if not isinstance(document, dict):
        msg = "a list of chat messages is expected, or an object with 'messages'"
        raise InputError(msg)
    payload = cast("dict[str, Any]", document)
    name = "standard input" if path == "-" else Path(path).stem
    chat_id = memory.ids.fresh() if options.new_id else f"openai:{Path(path).resolve() if path != '-' else path}"
    given = {"chat_id": chat_id, "agent": "openai", "title": name, "cwd": options.cwd}
    if options.project is not None:
        given["project_id"] = options.project
    recorded = await memory.record({**given, **payload}, replace=options.replace)
    return recorded.conversation_id
