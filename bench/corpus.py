"""Turns of code conversations, generated from a seed: two messages and five tool calls, about 4 kB, no two alike."""

from __future__ import annotations

import random
from typing import Any

_NOUNS = "token session login user cache index parser query branch commit schema worker queue retry timeout header router model".split()
_VERBS = "fix add remove rename check test move split cache validate parse log retry refactor document measure".split()
_TOOLS = ("Read", "Edit", "Bash", "Grep", "Write")


def turn(random_: random.Random) -> dict[str, Any]:
    """Return the arguments of one `record`."""
    names = [_identifier(random_) for _ in range(12)]
    return {
        "user": f"Please {random_.choice(_VERBS)} the {random_.choice(_NOUNS)} in src/{names[0]}/{names[1]}.py. "
        + _prose(random_, names, 40),
        "assistant": f"I changed `{names[2]}` and `{names[3]}`. " + _prose(random_, names, 110),
        "tool_calls": [_call(random_, names, n) for n in range(5)],
    }


def _identifier(random_: random.Random) -> str:
    return random_.choice(_VERBS) + "_" + random_.choice(_NOUNS) + str(random_.randrange(40))


def _prose(random_: random.Random, names: list[str], words: int) -> str:
    pool = [*_NOUNS, *_VERBS, *names, "the", "a", "when", "because", "without", "returns", "raises", "None", "after", "before"]
    return " ".join(random_.choice(pool) for _ in range(words)) + "."


def _call(random_: random.Random, names: list[str], n: int) -> dict[str, Any]:
    lines = [f"def {random_.choice(names)}(self, {random_.choice(_NOUNS)}):  # {_prose(random_, names, 5)}" for _ in range(6)]
    failed = random_.random() < 0.1
    return {
        "id": f"call_{random_.randrange(10**12)}",
        "name": _TOOLS[n],
        "arguments": {
            "file_path": f"src/{names[n]}/{random_.choice(_NOUNS)}.py",
            "command": f"pytest -k {names[n]}",
            "pattern": names[n + 1],
        },
        "duration_ms": random_.randrange(5_000),
        **({"error": f"{names[n]} failed: exit code 1"} if failed else {"result": "\n".join(lines)}),
    }


def turns(count: int, seed: int = 7) -> list[dict[str, Any]]:
    """Return so many turns."""
    random_ = random.Random(seed)  # noqa: S311  a corpus, not a secret
    return [turn(random_) for _ in range(count)]
