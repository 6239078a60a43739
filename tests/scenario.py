"""A shop's login, payments and models over two months, as engines sent it; and, worked out by hand, what the audit must answer.

The payloads mix FORMATS §1 (changes, context, calls and checkpoints told as lists) and §2 (roles `context_file` and `diff`,
checkpoints on messages, edits to be read from arguments). Everything lies before `tests.kit.START`, 2026-03-02 09:00 UTC.
Each `told_*` function takes the JSON of an answer, which every door gives alike, and keeps what the literals below state.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import msgspec

from recollect.answers import to_json
from recollect.memory import Memory
from recollect.model import Json

CANARY = "canaryzebra"
PERIOD = {"since": "2026-02-01"}  # the newer of the two periods; the older one is January
OLDER = {"until": "2026-02-01"}

# src/auth.py as req_create makes it; later it is src/auth/service.py
AUTH = 'import jwt\n\n\ndef login_user(user):\n    claims = jwt.decode(user.token)\n    return claims["sub"]\n'
CHECK = '    if user.token is None:\n        raise LoginError("the token has expired")\n'
LOGOUT = "\n\n\ndef logout_user(user):\n    if user.token is None:\n        return None\n    revoke(user.token)"
LINE = "if user.token is None:"
RENAME = """*** Begin Patch
*** Update File: src/auth.py
*** Move to: src/auth/service.py
@@ def login_user(user):
-    return claims["sub"]
+    return claims["user_id"]
*** End Patch
"""


def _call(call_id: str, name: str, **arguments: Any) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}


def _user(text: str, *commits: str, root: str = "/w") -> dict[str, Any]:
    told = {"checkpoints": [{"workspace_folder": root, "commit_hash": one} for one in commits]} if commits else {}
    return {"role": "user", "content": text, **told}


def _agent(text: str | None, *calls: dict[str, Any], thought: str | None = None) -> dict[str, Any]:
    blocks = [{"type": "thinking", "thinking": thought, "signature": "s"}] if thought else []
    return {"role": "assistant", "content": text, "tool_calls": list(calls) or None, "usage": None, "thinking_blocks": blocks}


def _result(call_id: str, text: str, *, failed: bool | None = False) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": text, **({} if failed is None else {"tool_failed": failed})}


def _request(request_id: str, at: str, *messages: dict[str, Any], chat: str = "login", **parts: Any) -> dict[str, Any]:
    titles = {"login": "Fix login bug", "payments": "Payments", "models": "Models", "ci": "Tests"}
    return {
        "request_id": request_id, "project_id": "shop", "timestamp": f"2026-{at}Z", "title": titles[chat],
        "chat_meta": {"chat_id": chat, "chat_mode": "AGENT"}, "messages": list(messages), **parts,
    }  # fmt: skip


def _login(root: str) -> list[dict[str, Any]]:
    """Return the chat about login: turns 0 to 8, of which 1 to 3 are one request."""
    chunk = {
        "file_name": f"{root}/src/auth/service.py", "file_action": "edit", "line1": 1, "line2": 1, "lines_remove": "import jwt\n",
        "lines_add": "import logging\n\nimport jwt\n", "file_name_rename": None, "application_details": "",
    }  # fmt: skip
    given = {"file_name": f"{root}/src/auth/service.py", "file_content": "import jwt …", "line1": 1, "line2": 8}
    return [
        _request(
            "req_create", "01-10T10:00:00",
            _user("Write a login", "aa01", root=root),
            _agent(None, _call("t1", "create_textdoc", path="src/auth.py", content=AUTH), thought="A decoder is all it takes"),
            _result("t1", "created"),
            _agent("There it is"),
        ),
        _request(
            "req_check", "01-12T10:00:00",
            _user("Why does login crash when the token has expired?"),
            _agent(None, _call("c1", "cat", paths="src/auth.py:1-6")),
            _result("c1", AUTH),
            _agent("The token is None after expiry"),
            _user("Then add a null check"),
            _agent(
                "I'll check the token first",
                _call("t2", "update_textdoc", path="src/auth.py", old_str="    claims = jwt.decode(user.token)",
                      replacement=CHECK + "    claims = jwt.decode(user.token)"),
                thought="auth.py reads user.token without a null check, and errors.md asks for defensive code",
            ),
            _result("t2", "1 file changed"),
            _agent("Added a null check"),
            _user("Is there a test for it?"),
            _agent("Not yet"),
            tool_calls=[{"tool_call_id": "t2", "tool_name": "update_textdoc", "status": "success", "execution_time_ms": 41}],
            context_files=[
                {"file_path": "tests/test_auth.py", "source": "ast"},
                {"file_path": "docs/errors.md", "usefulness": 78, "source": "vecdb"},
                {"file_path": "src/auth.py", "line_start": 1, "line_end": 6, "usefulness": 0.92, "source": "vecdb"},
            ],
            checkpoints=[{"checkpoint_id": "k2", "parent_checkpoint": None, "workspace_dir": root, "git_hash": "ab02"}],
        ),
        _request(
            "req_rename", "01-20T10:00:00",
            _user("Give authentication a folder of its own, and return the user's id"),
            _agent(None, _call("p1", "apply_patch", input=RENAME)),
            _result("p1", "Success. Updated the following files"),
            _agent("Moved"),
        ),
        _request(
            "req_shim", "02-26T10:00:00",
            _user("Keep the old import working"),
            _agent(None, _call("t3", "create_textdoc", path="src/auth.py", content="from src.auth.service import login_user\n")),
            _result("t3", "created"),
            _agent("Kept"),
        ),
        _request(
            "req_log", "02-27T10:00:00",
            _user("Log who logs in"),
            _agent(None, _call("t4", "update_textdoc", path="src/auth/service.py"), thought="Logging comes before everything else"),
            {"role": "context_file", "content": json.dumps([given])},
            {"role": "diff", "tool_call_id": "t4", "content": json.dumps([chunk])},
            _agent("It is logged"),
        ),
        _request(
            "req_limit", "03-01T10:00:00",
            {"role": "user", "content_summary": "Limit attempts", "content_hash": "sha256:" + "a" * 64, "sequence": 0},
            {"role": "assistant", "content_summary": "Limited", "content_hash": "sha256:" + "b" * 64, "sequence": 1,
             "tool_calls": [{"id": "t5", "tool": "update_textdoc", "args_hash": "sha256:" + "c" * 64}]},
            context=[
                {"file_path": "CHANGELOG.md", "usefulness": 5, "source": "vecdb"},
                {"file_path": "docs/errors.md", "usefulness": 0.62, "source": "manual"},
                {"file_path": "CHANGELOG.md", "usefulness": 0.1, "source": "vecdb"},
            ],
            tool_calls=[{"tool_call_id": "t5", "tool_name": "update_textdoc", "arguments_hash": "sha256:" + "c" * 64, "status": "success",
                         "execution_time_ms": 59}],
            code_changes=[{"file_path": "src/auth/service.py", "function_name": "login_user", "line_start": 10, "line_end": 12,
                           "change_type": "updated", "change_summary": "at most five attempts", "severity": "high", "lines_added": 3,
                           "lines_removed": 1, "tool_call_id": "t5"}],
            checkpoints=[{"checkpoint_id": "k3", "parent_checkpoint": "k2", "workspace_dir": root, "git_hash": "ab03"}],
        ),
        _request(
            "req_logout", "03-02T08:00:00",
            _user("Add a logout", "bb04", root=root),
            _agent(None, _call("t6", "update_textdoc", path="src/auth/service.py", old_str="    return session",
                               replacement="    return session" + LOGOUT)),
            _result("t6", "1 file changed"),
            _agent("Added"),
        ),
    ]  # fmt: skip


def _payments() -> list[dict[str, Any]]:
    """Return the chat about payments: a file of which no content is kept, only where it was changed."""

    def changed(request_id: str, at: str, asked: str, **change: Any) -> dict[str, Any]:
        told = {"file_path": "src/pay.py", "tool_call_id": None, **change}
        return _request(request_id, at, _user(asked), _agent("Done"), chat="payments", code_changes=[told])

    return [
        changed("req_pay_1", "01-15T10:00:00", "Take payments", change_type="created", line_start=1, line_end=20, lines_added=20,
                lines_removed=0),
        changed("req_pay_2", "02-25T10:00:00", "Refuse negative amounts", line_start=12, line_end=14, lines_added=3, lines_removed=1),
        changed("req_pay_3", "02-28T10:00:00", "Name the currency", line_start=3, line_end=7, lines_added=5, lines_removed=0),
    ]  # fmt: skip


def _models() -> list[dict[str, Any]]:
    """Return the chat about models: one file that is context 47 times."""

    def given(number: int, source: str, usefulness: float | None) -> list[dict[str, Any]]:
        one = {"file_path": "src/models.py", "source": source, **({} if usefulness is None else {"usefulness": usefulness})}
        return [{**one, "line_start": 10 * n + 1, "line_end": 10 * n + 9} for n in range(number)]

    return [
        _request(
            "req_models_1", "01-14T10:00:00", _user("Add a model of a cart"), _agent("Added"), chat="models",
            context_files=[*given(7, "vecdb", 0.88), *given(3, "vecdb", None)],
            code_changes=[{"file_path": "src/models.py", "change_type": "updated", "lines_added": 12, "lines_removed": 2}],
        ),
        _request(
            "req_models_2", "02-26T12:00:00",
            _user("Show the cart"),
            _agent(None, _call("v1", "update_textdoc", path="src/views.py", old_str="pass", replacement="return render(cart)")),
            _result("v1", "1 file changed"),
            _agent("It is shown"),
            _user("Is it empty at first?"),
            _agent("It is"),
            chat="models",
            context_files=[*given(13, "vecdb", 0.88), *given(20, "ast", 90), *given(4, "vecdb", None)],
            checkpoints=[{"checkpoint_id": "m1"}],
        ),
    ]  # fmt: skip


def _tests() -> list[dict[str, Any]]:
    """Return the chat that runs tests: 25 calls, of which 3 fail, told in three ways, and 20 have a duration."""
    calls = [f"r{n}" for n in range(1, 26)]
    first, second = calls[:10], calls[10:]
    said = {"r4": "Error: 3 tests failed\nsee the log", "r12": "Error: 7 tests failed\nsee the log"}
    timed = [{"tool_call_id": one, "tool_name": "run_tests", "execution_time_ms": 10 * n} for n, one in enumerate(calls[:20], 1)]
    timed[14] |= {"status": "failed", "error": "Timeout after 30 s"}
    return [
        _request(
            request_id, at, _user(asked),
            _agent(None, *(_call(one, "run_tests", suite=one) for one in own)),
            *(_result(one, said.get(one, "passed"), failed={"r4": True, "r12": None}.get(one, False)) for one in own if one != "r15"),
            _agent("Ran"),
            chat="ci",
            tool_calls=[one for one in timed if one["tool_call_id"] in own],
        )
        for request_id, at, asked, own in (
            ("req_ci_1", "01-16T10:00:00", "Run the tests", first),
            ("req_ci_2", "02-27T23:30:00", "Run them again", second),
        )
    ]  # fmt: skip


def _blog() -> list[dict[str, Any]]:
    """Return another project: the same paths, tools and lines, and one request id that the shop has too."""
    calls = [f"b{n}" for n in range(4)]
    return [
        {
            "request_id": "req_log", "project_id": "blog", "timestamp": "2026-02-27T11:00:00Z", "chat_meta": {"chat_id": "posts"},
            "messages": [
                _user("Blog about login"),
                _agent(None, *(_call(one, "run_tests", suite=one) for one in calls),
                       _call("e1", "update_textdoc", path="src/auth/service.py", old_str="pass", replacement=LINE)),
                *(_result(one, "Error: the blog is down", failed=True) for one in calls),
                _result("e1", "1 file changed"),
                _agent("Done"),
            ],
            "context_files": [{"file_path": "src/models.py", "usefulness": 0.1, "source": "blogdb"}],
            "checkpoints": [{"checkpoint_id": "z9"}],
        }
    ]  # fmt: skip


def payloads(root: str = "/w") -> list[dict[str, Any]]:
    """Return everything that is recorded, in order; `root` is where the shop's work tree is."""
    return [*({**one, "cwd": root} for one in _login(root)), *_payments(), *_models(), *_tests(), *_blog()]


def canaries() -> list[dict[str, Any]]:
    """Return what another workspace holds: the same project, chat, requests, paths and lines, and a canary in every answer."""
    return [
        {
            "request_id": request_id, "project_id": "shop", "timestamp": "2026-03-02T08:30:00Z", "title": CANARY,
            "chat_meta": {"chat_id": "login"},
            "messages": [
                _user(f"{CANARY} {request_id}"),
                _agent(CANARY, _call("x1", "run_tests", suite=CANARY),
                       _call("x2", "update_textdoc", path="src/auth/service.py", old_str="pass", replacement=f"{LINE}\n    {CANARY}()"),
                       thought=CANARY),
                _result("x1", CANARY, failed=True),
                _result("x2", CANARY),
            ],
            "context_files": [{"file_path": "src/models.py", "usefulness": 0.01, "source": CANARY}],
            "code_changes": [{"file_path": "src/pay.py", "line_start": 1, "line_end": 99, "lines_added": 99, "change_summary": CANARY}],
            "checkpoints": [{"checkpoint_id": CANARY}],
        }
        for request_id in ("req_check", "req_log", "req_limit")
    ]  # fmt: skip


def told_why(answer: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Return the changes: request, tool, path, kind, lines added and removed, turn."""
    return [
        (
            one["request_id"], None if one["tool_call"] is None else one["tool_call"]["tool_name"], one["change"]["file_path"],
            one["change"]["change_type"], one["change"]["lines_added"], one["change"]["lines_removed"], one["turn"]["index"],
        )
        for one in answer["changes"]
    ]  # fmt: skip


def told_context(files: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Return context files: path, usefulness, source."""
    return [(one["file_path"], one["usefulness"], one["source"]) for one in files]


def told_flow(answer: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Return the steps: sequence, role, words, and for each call its tool, status, duration and the files it changed."""
    return [
        (
            step["sequence"], step["role"], step["text"],
            [(one["tool_name"], one["status"], one["duration_ms"], [change["file_path"] for change in one["changes"]])
             for one in step["tool_calls"]],
        )
        for step in answer["steps"]
    ]  # fmt: skip


def told_usage(files: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Return files as context: path, uses, average, sources."""
    return [(one["path"], one["count"], one["average_usefulness"], list(one["sources"])) for one in files]


def told_changes(changes: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Return changes by request, path, kind."""
    return [(one["request_id"], one["file_path"], one["change_type"]) for one in changes]


def told_tools(tools: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Return tools: name, calls, failures, rate, p50, p95."""
    return [(one["tool_name"], one["calls"], one["failures"], one["failure_rate"], one["p50_ms"], one["p95_ms"]) for one in tools]


def told_checkpoints(entries: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Return checkpoints: id, turn, parent, whether that was inferred, and the requests whose changes came after it."""
    return [
        (one["checkpoint"]["checkpoint_id"], one["turn_index"], one["parent"], one["parent_inferred"],
         [change["request_id"] for change in one["changes"]])
        for one in entries
    ]  # fmt: skip


# Two changes added the line: the logout of 2 March in turn 8, and the null check of 12 January, when the file was src/auth.py,
# in turn 2: the second of the three turns of its request, which follow turn 0. The logout adds two blank lines, a definition, the
# line, a return and a revocation: 6; the null check two lines. The blog's change of the same path is not the shop's.
WHY_LINE = [
    ("req_logout", "update_textdoc", "src/auth/service.py", "updated", 6, 0, 8),
    ("req_check", "update_textdoc", "src/auth.py", "updated", 2, 0, 2),
]
# The context was given with the last turn of req_check (3), the change was made in turn 2; 78 of 100 is 0.78; unknown comes last.
WHY_CONTEXT = [("src/auth.py", 0.92, "vecdb"), ("docs/errors.md", 0.78, "vecdb"), ("tests/test_auth.py", None, "ast")]
WHY_ASKED = "Then add a null check"
WHY_REASONING = "auth.py reads user.token without a null check, and errors.md asks for defensive code"
# The whole file, newest first. req_shim made another src/auth.py when the name was free, so it is not in it. req_log's chunk turns
# one line into three of which one stays: +2. The patch moved the file and replaced a line: +1 −1. AUTH has six lines.
WHY_FILE = [
    ("req_logout", "update_textdoc", "src/auth/service.py", "updated", 6, 0, 8),
    ("req_limit", "update_textdoc", "src/auth/service.py", "updated", 3, 1, 7),
    ("req_log", "update_textdoc", "src/auth/service.py", "updated", 2, 0, 6),
    ("req_rename", "apply_patch", "src/auth/service.py", "renamed", 1, 1, 4),
    ("req_check", "update_textdoc", "src/auth.py", "updated", 2, 0, 2),
    ("req_create", "create_textdoc", "src/auth.py", "created", 6, 0, 0),
]
# src/pay.py by numbers alone: line → the request. Today's file has 20 + 2 + 5 = 27 lines. 5 lies in 3–7 of req_pay_3. 18 was 13
# before its 5 lines: in 12–14 of req_pay_2. 13 was 8, above 12: in 1–20 of req_pay_1. 21 was 16, and 14 before the 2 lines more of
# req_pay_2. 2 is above everything. 28 was 23, then 21, beyond the 20 lines of the first.
WHY_RANGE = {2: "req_pay_1", 5: "req_pay_3", 13: "req_pay_1", 18: "req_pay_2", 21: "req_pay_1", 27: "req_pay_1", 28: None}

# Sequences count through the conversation: the request before has messages 0 to 2 (results are no messages of their own).
FLOW = [
    (3, "user", "Why does login crash when the token has expired?", []),
    (4, "assistant", "", [("cat", "success", None, [])]),
    (5, "assistant", "The token is None after expiry", []),
    (6, "user", "Then add a null check", []),
    (7, "assistant", "I'll check the token first", [("update_textdoc", "success", 41.0, ["src/auth.py"])]),
    (8, "assistant", "Added a null check", []),
    (9, "user", "Is there a test for it?", []),
    (10, "assistant", "Not yet", []),
]

# 10 uses in January (7 rated 0.88), 37 in February (13 rated 0.88, 20 rated 90 of 100): 47. Rated: 20 * 0.88 + 20 * 0.90 = 35.6,
# over 40 = 0.89; the 7 without a rating count as uses only. In February alone (13 * 0.88 + 20 * 0.90) / 33 = 29.44 / 33.
USAGE = ("src/models.py", 47, 0.89, ["ast", "vecdb"])
USAGE_NEWER = ("src/models.py", 37, 0.892121, ["ast", "vecdb"])
USAGE_OLDER = ("src/models.py", 10, 0.88, ["vecdb"])
# The change of views.py is in the first turn of a request whose context came with the second.
USAGE_FOLLOWED = [("req_models_2", "src/views.py", "updated"), ("req_models_1", "src/models.py", "updated")]
# errors.md: (0.78 + 0.62) / 2; CHANGELOG.md: (0.05 + 0.1) / 2, never 0.2; equal counts by path; req_log's context had no rating.
MOST_USED = [
    USAGE,
    ("CHANGELOG.md", 2, 0.075, ["vecdb"]),
    ("docs/errors.md", 2, 0.7, ["manual", "vecdb"]),
    ("src/auth.py", 1, 0.92, ["vecdb"]),
    ("src/auth/service.py", 1, None, ["tool"]),
    ("tests/test_auth.py", 1, None, ["ast"]),
]
MOST_USEFUL = ["src/auth.py", "src/models.py", "docs/errors.md"]
NEVER_USEFUL = ["CHANGELOG.md"]
# vecdb: 27 of models.py, 1 of auth.py, 1 of errors.md, 2 of CHANGELOG.md = 31 of 4 files; rated 20 * 0.88 + 0.92 + 0.78 + 0.05 + 0.1
# = 19.45, over 24 = 0.810417. ast: 20 of models.py at 0.9, and test_auth.py unrated.
SOURCES = [("ast", 21, 2, 0.9), ("vecdb", 31, 4, 0.810417), ("manual", 1, 1, 0.62), ("tool", 1, 1, None)]

# run_tests: r1 to r25; r4 (told to have failed), r12 (its result begins with "Error:") and r15 (status and error in the list) failed:
# 3 of 25 = 12 %. Durations are known of r1 to r20: 10, 20 … 200 ms. Rank 50 % of 20 is the 10th, 100; 95 % the 19th, 190.
RELIABILITY = ("run_tests", 25, 3, 0.12, 100.0, 190.0)
# r4 and r12 say the same but for a number: the newer wording is shown.
ERRORS = [("Error: 7 tests failed", 2), ("Timeout after 30 s", 1)]
TREND = [("2026-01-16", 10, 1), ("2026-02-27", 15, 2)]
# In February: r11 to r25, of which r12 and r15 failed: 2 of 15. Known are 110 … 200: rank 5 of 10 is 150, rank 10 (9.5 rounded up) 200.
RELIABILITY_NEWER = ("run_tests", 15, 2, 0.133333, 150.0, 200.0)
# update_textdoc: t2 (41 ms), t4, t5 (59 ms), t6, v1; rank 1 of 2 is 41. Equal counts by name.
TOOLS = [
    RELIABILITY,
    ("update_textdoc", 5, 0, 0.0, 41.0, 59.0),
    ("create_textdoc", 2, 0, 0.0, None, None),
    ("apply_patch", 1, 0, 0.0, None, None),
    ("cat", 1, 0, 0.0, None, None),
]

# aa01 comes with the first message, as a commit alone; k2, with the last turn of its request (3), names no parent, so it follows aa01;
# k3 names k2; bb04 follows k3. m1 is in another conversation and follows nothing. A checkpoint is before the changes of its turn:
# those of turns 0 to 2 are after aa01, those of 3 to 6 after k2.
CHECKPOINTS = [
    ("aa01", 0, None, False, ["req_create", "req_check"]),
    ("k2", 3, "aa01", True, ["req_rename", "req_shim", "req_log"]),
    ("m1", 2, None, False, []),
    ("k3", 7, "k2", False, ["req_limit"]),
    ("bb04", 8, "k3", True, ["req_logout"]),
]
CHECKPOINTS_NEWER = CHECKPOINTS[2:]
CHECKPOINTS_LOGIN = [one for one in CHECKPOINTS if one[0] != "m1"]


class Question(NamedTuple):
    """One question as every door takes it: a method of the library, a command, a route; `within` is the period."""

    method: str
    given: dict[str, Any]
    command: tuple[str, ...]
    route: str
    query: dict[str, Any]
    within: dict[str, str]

    @property
    def scope(self) -> dict[str, str]:
        """The project of the library's and the command's question; a route has it in its path, and a request's id needs none."""
        return {} if self.method == "flow" else {"project": "shop"}

    @property
    def line(self) -> list[str]:
        """The arguments of the command."""
        named = {**self.scope, **self.within}
        return [*self.command, *(part for name, value in named.items() for part in (f"--{name}", value))]

    async def ask(self, memory: Memory) -> Json:
        """Ask the library; the answer as JSON."""
        return msgspec.json.decode(
            msgspec.json.encode(to_json(await getattr(memory, self.method)(**self.given, **self.scope, **self.within)))
        )

    def of_route(self, body: Json) -> Json:
        """Return the answer in the body of a reply: a list comes as a page."""
        return body["items"] if self.route.endswith(("/tools", "/checkpoints")) else body


def _questions() -> dict[str, Question]:
    service, pay, models = "src/auth/service.py", "src/pay.py", "src/models.py"
    why, used = "/projects/shop/why", "/projects/shop/files/usage"

    def asked(method: str, given: dict[str, Any], command: tuple[str, ...], route: str, query: dict[str, Any], **within: str) -> Question:
        return Question(method, given, command, route, query, within)

    return {
        "why a line": asked("why", {"path": service, "line": 7, "line_text": LINE}, ("why", f"{service}:7", "--text", LINE), why,
                            {"path": service, "line": 7, "text": LINE}),
        "why a file": asked("why", {"path": service}, ("why", service), why, {"path": service}),
        "why a number": asked("why", {"path": pay, "line": 18}, ("why", f"{pay}:18"), why, {"path": pay, "line": 18}),
        "flow": asked("flow", {"request_id": "req_check"}, ("flow", "req_check"), "/requests/req_check/flow", {}),
        "usage of a file": asked("file_usage", {"path": models}, ("usage", models), used, {"path": models}),
        "usage of a file in a period": asked("file_usage", {"path": models}, ("usage", models), used, {"path": models}, **PERIOD),
        "usage": asked("context_usage", {}, ("usage",), used, {}),
        "tools": asked("tool_reliability", {}, ("tools",), "/projects/shop/tools", {}),
        "a tool in a period": asked("tool_reliability", {"tool_name": "run_tests"}, ("tools", "--tool", "run_tests"),
                                    "/projects/shop/tools", {"tool": "run_tests"}, **PERIOD),
        "checkpoints": asked("checkpoints", {}, ("checkpoints",), "/projects/shop/checkpoints", {}),
        "checkpoints of a period": asked("checkpoints", {}, ("checkpoints",), "/projects/shop/checkpoints", {}, **PERIOD),
    }  # fmt: skip


QUESTIONS = _questions()


def check_answers(answers: dict[str, Json]) -> None:
    """Compare the answers to `QUESTIONS`, of any door on any store, with what was worked out by hand."""
    line = answers["why a line"]
    assert (line["path"], line["line"], line["line_text"], line["found_by"]) == ("src/auth/service.py", 7, LINE, "content")
    assert told_why(line) == WHY_LINE
    null_check = line["changes"][1]
    assert (null_check["asked"], null_check["reasoning"]) == (WHY_ASKED, WHY_REASONING)
    assert (null_check["conversation_title"], null_check["tool_call"]["tool_call_id"]) == ("Fix login bug", "t2")
    assert told_context(null_check["context_files"]) == WHY_CONTEXT
    assert told_why(answers["why a file"]) == WHY_FILE
    assert [one["request_id"] for one in answers["why a number"]["changes"]] == [WHY_RANGE[18]]
    assert answers["why a number"]["found_by"] == "range"
    assert told_flow(answers["flow"]) == FLOW
    assert told_context(answers["flow"]["context_files"]) == WHY_CONTEXT
    assert told_usage([answers["usage of a file"]]) == [USAGE]
    assert told_changes(answers["usage of a file"]["followed_by_changes"]) == USAGE_FOLLOWED
    assert told_usage([answers["usage of a file in a period"]]) == [USAGE_NEWER]
    assert told_usage(answers["usage"]["most_used"]) == MOST_USED
    assert [one["path"] for one in answers["usage"]["most_useful"]] == MOST_USEFUL
    assert [one["path"] for one in answers["usage"]["never_useful"]] == NEVER_USEFUL
    assert [(one["source"], one["count"], one["files"], one["average_usefulness"]) for one in answers["usage"]["sources"]] == SOURCES
    assert told_tools(answers["tools"]) == TOOLS
    run_tests = answers["tools"][0]
    assert [(one["message"], one["count"]) for one in run_tests["common_errors"]] == ERRORS
    assert [(one["day"], one["calls"], one["failures"]) for one in run_tests["trend"]] == TREND
    assert told_tools(answers["a tool in a period"]) == [RELIABILITY_NEWER]
    assert told_checkpoints(answers["checkpoints"]) == CHECKPOINTS
    assert told_checkpoints(answers["checkpoints of a period"]) == CHECKPOINTS_NEWER
    assert CANARY not in json.dumps(answers)
