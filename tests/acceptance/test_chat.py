"""`recollect chat` as a person and as a program use it: typed, piped, streamed, resumed, stopped."""

from __future__ import annotations

import codecs
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from recollect.sync import Memory
from tests.endpoint import Endpoint

WAIT_SECONDS_MAX = 90
RECOLLECT = str(Path(sys.executable).parent / "recollect")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "shop").mkdir()
    monkeypatch.setenv("RECOLLECT_STORE", str(tmp_path / "memory.db"))
    monkeypatch.setenv("COLUMNS", "100")
    return tmp_path / "shop"


def chat(folder: Path, *words: str, said: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run([RECOLLECT, "chat", *words], cwd=folder, input=said, capture_output=True, text=True, check=False)


def configured(folder: Path, monkeypatch: pytest.MonkeyPatch, endpoint: Endpoint) -> None:
    path = folder.parent / "config.yaml"
    path.write_text(f"models:\n  agent: {{name: small, endpoint: '{endpoint.url}'}}\n")
    monkeypatch.setenv("RECOLLECT_CONFIG", str(path))


class Typed:
    """A person at a terminal: what is on the screen, and what is typed."""

    def __init__(self, master: int, process: subprocess.Popen[bytes]) -> None:
        self.screen = ""
        self.process = process
        self._master = master
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def until(self, pattern: str) -> str:
        """Read until the screen shows something new, and return what came."""
        start = len(self.screen)
        while re.search(pattern, self.screen[start:]) is None:
            ready, _, _ = select.select([self._master], [], [], WAIT_SECONDS_MAX)
            assert ready, f"nothing like {pattern!r} came after {self.screen[-500:]!r}"
            try:
                self.screen += self._decoder.decode(os.read(self._master, 65_536))
            except OSError:
                pytest.fail(f"it ended before {pattern!r}: {self.screen[-500:]!r}")
        return self.screen[start:]

    def types(self, line: str) -> None:
        os.write(self._master, f"{line}\n".encode())

    def ends(self) -> int:
        return self.process.wait(WAIT_SECONDS_MAX)


@contextmanager
def typed(folder: Path, *words: str, colours: bool = False) -> Generator[Typed]:
    master, slave = pty.openpty()
    environment = {**os.environ, "TERM": "dumb"} | ({} if colours else {"NO_COLOR": "1"})
    process = subprocess.Popen(
        [RECOLLECT, "chat", *words], cwd=folder, stdin=slave, stdout=slave, stderr=slave, env=environment, start_new_session=True
    )
    os.close(slave)
    try:
        yield Typed(master, process)
    finally:
        process.kill()
        process.wait()
        os.close(master)


def test_without_a_model_it_says_what_to_set(folder: Path) -> None:
    done = chat(folder, "hello")
    assert done.returncode == 2
    assert "models.agent.name" in done.stderr
    assert done.stdout == ""


def test_one_message_is_answered_and_remembered(folder: Path) -> None:
    first = chat(folder, "--offline", "Which", "port?")
    assert first.returncode == 0
    assert "nothing recalled" in first.stdout
    assert "→ search_memory" in first.stdout
    assert first.stdout.endswith("I remember nothing about that yet.\n")
    listed = subprocess.run([RECOLLECT, "conversations", "--json"], capture_output=True, text=True, check=True)
    (info,) = json.loads(listed.stdout)
    assert (info["agent"], info["project"], info["turn_count"]) == ("recollect", "shop", 1)


def test_what_comes_in_a_pipe_is_one_message_and_the_newest_conversation_is_resumed(folder: Path) -> None:
    assert chat(folder, "--offline", said="One?\n\nTwo?\n").returncode == 0
    assert chat(folder, "--offline", "--resume", said="Three?\n").returncode == 0
    assert chat(folder, "--offline", "--resume", "", "What", "is", "this?", "-", said="Traceback …\n").returncode == 0
    listed = json.loads(subprocess.run([RECOLLECT, "conversations", "--json"], capture_output=True, text=True, check=True).stdout)
    assert [info["turn_count"] for info in listed] == [3]
    assert chat(folder, "--offline", "--resume", listed[0]["id"][:8], "Four?").returncode == 0
    assert chat(folder, "--offline", "--resume", "no-such-one", "Five?").returncode == 1
    shown = subprocess.run([RECOLLECT, "show", listed[0]["id"], "--json"], capture_output=True, text=True, check=True)
    asked = [turn["user"] for turn in json.loads(shown.stdout)["turns"]]
    assert asked == ["One?\n\nTwo?", "Three?", "What is this?\n\nTraceback …", "Four?"]
    (folder.parent / "elsewhere").mkdir()
    assert chat(folder, "--offline", "--cwd", str(folder.parent / "elsewhere"), "--resume", "", "Six?").returncode == 1


@pytest.mark.parametrize(
    ("words", "told"), [(("",), "nothing to answer"), ((), "nothing to answer"), (("--cwd", "/nope", "q"), "no directory")]
)
def test_what_makes_no_sense_is_told_and_leaves_nothing(folder: Path, words: tuple[str, ...], told: str) -> None:
    done = chat(folder, "--offline", *words)
    assert done.returncode == 2
    assert told in done.stderr
    assert subprocess.run([RECOLLECT, "conversations"], capture_output=True, check=False).returncode == 1


def test_summaries_by_a_model_in_the_background_do_not_disturb_an_agent(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Endpoint(500) as endpoint:
        path = folder.parent / "config.yaml"
        use = f"{{name: small, endpoint: '{endpoint.url}'}}"
        path.write_text(f"models: {{agent: {use}, summaries: {use}, titles: {use}}}\n")
        monkeypatch.setenv("RECOLLECT_CONFIG", str(path))
        monkeypatch.setenv("RECOLLECT_WORKER", "on")
        with Memory.open(worker=False) as memory:
            waiting = memory.create_conversation(cwd=folder)
            for n in range(6):
                waiting.record(user=f"message {n}", assistant="answer")
        done = chat(folder, "hello")
    assert "did not answer" in done.stderr


def test_a_program_is_told_line_by_line(folder: Path) -> None:
    done = chat(folder, "--offline", "--json", "port?")
    events: list[dict[str, Any]] = [json.loads(line) for line in done.stdout.splitlines()]
    assert [event["event"] for event in events][:3] == ["context", "tool_call", "tool_result"]
    reply = events[-1]
    assert reply["event"] == "reply"
    assert "".join(event["text"] for event in events if event["event"] == "text") == reply["content"]
    assert [call["tool_name"] for call in reply["tool_calls"]] == ["search_memory"]


def test_a_model_that_fails_ends_with_a_sentence_and_a_code(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Endpoint(500) as endpoint:
        configured(folder, monkeypatch, endpoint)
        done = chat(folder, "hello")
    assert done.returncode != 0
    assert done.stderr.startswith("recollect: the model 'small' did not answer")
    assert "Traceback" not in done.stderr


def test_without_the_package_of_agents_it_says_what_to_install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder.parent / "block").mkdir()
    (folder.parent / "block" / "sitecustomize.py").write_text("import sys\nsys.modules['pydantic_ai'] = None\n")
    monkeypatch.setenv("PYTHONPATH", str(folder.parent / "block"))
    with Endpoint("") as endpoint:
        configured(folder, monkeypatch, endpoint)
    for words in (("--offline", "hi"), ("hi",)):
        done = chat(folder, *words)
        assert (done.returncode, done.stderr) == (2, "recollect: an agent needs one more package: pip install 'recollect[models]'\n")


def test_a_person_talks_looks_at_what_was_recalled_and_comes_back_later(folder: Path) -> None:
    with typed(folder, "--offline") as person:
        person.until("› ")
        person.types("Which port does the shop use?")
        person.until(r"nothing about that yet\.[\s\S]*› ")
        person.types("/context")
        person.until(r"nothing was recalled[\s\S]*› ")
        person.types("/help")
        person.until(r"Ctrl-D ends[\s\S]*› ")
        person.types("/exit")
        assert person.ends() == 0
    with typed(folder, "--offline", "--resume") as person:
        person.until("which\\?")
        person.types("9")
        person.until("which\\?")
        person.types("1")
        assert "Which port does the shop use?" in person.until("› Which[\\s\\S]*› ")
        person.types("And now?")
        person.until("recalled 1 [\\s\\S]*› ")
        person.types("/context")
        assert "turn 0" in person.until("recollect-memory[\\s\\S]*› ")
        person.types("/new")
        person.until("new conversation[\\s\\S]*› ")
        person.types("/quit")
        assert person.ends() == 0


def test_what_looks_like_a_command_and_is_none_is_not_sent(folder: Path) -> None:
    with typed(folder, "--offline") as person:
        person.until("› ")
        person.types("/contxt")
        assert "/new begins anew" in person.until(r"'/contxt' is no command: [\s\S]*› ")
        for sent in ("/usr/bin/python is what?", "// what is this"):
            person.types(sent)
            person.until("→ search_memory[\\s\\S]*\n› ")
        person.types("/exit")
        assert person.ends() == 0


def test_what_was_said_before_is_shown_in_colours_that_work(folder: Path) -> None:
    assert chat(folder, "--offline", "Which \x1b[31mport?").returncode == 0
    with typed(folder, "--offline", "--resume", colours=True) as person:
        person.until("which\\?")
        person.types("1")
        recap = person.until("Which[\\s\\S]*nothing about that yet")
        assert "\x1b[36m›\x1b[0m Which" in recap
        assert "\x1b[31m" not in recap
        person.types("/exit")
        assert person.ends() == 0


def test_an_answer_is_stopped_and_the_talk_goes_on(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Endpoint(600.0) as endpoint:
        configured(folder, monkeypatch, endpoint)
        with typed(folder) as person:
            person.until("› ")
            person.types("Think for ever")
            person.until("nothing recalled")
            while not endpoint.asked:
                time.sleep(0.02)
            os.kill(person.process.pid, signal.SIGINT)
            person.until("stopped; what there is of the answer is kept[\\s\\S]*› ")
            person.types("/exit")
            assert person.ends() == 0
    listed = json.loads(subprocess.run([RECOLLECT, "conversations", "--json"], capture_output=True, text=True, check=True).stdout)
    shown = subprocess.run([RECOLLECT, "show", listed[0]["id"], "--json"], capture_output=True, text=True, check=True)
    assert json.loads(shown.stdout)["turns"][0]["status"] == "failed"
