from __future__ import annotations

import json
import os
import subprocess
import sys
from argparse import Namespace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from recollect.errors import ConfigError, InputError, StoreBusyError
from recollect.serve.cli.tokens import token
from recollect.serve.http import tokens as module
from recollect.serve.http.tokens import FIRST_KEY_SECONDS_MAX, FirstKey, TokenFile, TokenRecord, default_token_path
from tests.kit import START


@pytest.fixture
def file(tmp_path: Path) -> TokenFile:
    return TokenFile(tmp_path / "own" / "tokens.json")


def test_a_token_opens_its_workspace_with_its_role(file: TokenFile) -> None:
    record, secret = file.create("team", "write", "laptop", START)
    assert file.check(secret, START) == record
    assert (record.workspace, record.role, record.label, record.revoked) == ("team", "write", "laptop", False)
    assert secret.startswith("rcl_")
    assert len(secret) == len("rcl_") + 43


def test_a_role_may_what_lower_ones_may(file: TokenFile) -> None:
    write, _ = file.create("w", "write", None, START)
    assert [write.may("read"), write.may("write"), write.may("admin")] == [True, True, False]


@pytest.mark.parametrize("wrong", ["", "rcl_", "rcl_" + "a" * 43, "é\ud800", "x" * 100_000])
def test_another_secret_opens_nothing(file: TokenFile, wrong: str) -> None:
    assert file.check(wrong, START) is None
    file.create("w", "admin", None, START)
    assert file.check(wrong, START) is None


def test_the_secret_is_not_in_the_file_and_the_file_is_private(file: TokenFile) -> None:
    _, secret = file.create("w", "read", None, START)
    assert secret.removeprefix("rcl_") not in file.path.read_text()
    assert {path.stat().st_mode & 0o777 for path in file.path.parent.iterdir()} == {0o600}
    assert file.path.parent.stat().st_mode & 0o777 == 0o700


def test_a_token_ends_when_its_days_are_over(file: TokenFile) -> None:
    _, secret = file.create("w", "read", None, START, days=2)
    assert file.check(secret, START + timedelta(days=2, seconds=-1)) is not None
    assert file.check(secret, START + timedelta(days=2)) is None


def test_a_revocation_by_another_process_holds_at_once(file: TokenFile) -> None:
    record, secret = file.create("w", "read", None, START)
    other, kept = file.create("w", "read", None, START)
    assert file.check(secret, START) is not None
    assert TokenFile(file.path).revoke(record.id)
    assert file.check(secret, START) is None
    assert file.check(kept, START) == other
    assert [one.revoked for one in file.list()] == [True, False]


def test_an_unchanged_file_is_not_decoded_again(file: TokenFile, monkeypatch: pytest.MonkeyPatch) -> None:
    _, secret = file.create("w", "read", None, START)
    file.check(secret, START)
    monkeypatch.setattr(TokenFile, "_decoded", lambda *_: pytest.fail("decoded again"))
    assert file.check(secret, START) is not None


def test_a_deleted_file_opens_nothing(file: TokenFile) -> None:
    _, secret = file.create("w", "read", None, START)
    file.path.unlink()
    assert file.check(secret, START) is None
    assert file.list() == []


def test_revoking_twice_is_as_good_as_once_and_an_unknown_id_is_a_no(file: TokenFile) -> None:
    record, _ = file.create("w", "read", None, START)
    assert [file.revoke(record.id), file.revoke(record.id), file.revoke("nobody")] == [True, True, False]


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"{",
        b"[]",
        b'{"tokens": 1}',
        b"\xff\xfe",
        b"[" * 100_000,
        b" " * 1_000_001,
        b'{"tokens": [{"id": "a"}]}',
        b'{"tokens": [], "x": 1}',
    ],
    ids=range(9),
)
def test_a_damaged_file_is_an_error_that_names_it_and_is_left_as_it_is(file: TokenFile, damage: bytes) -> None:
    file.create("w", "read", None, START)
    file.path.write_bytes(damage)
    for use in (file.list, lambda: file.check("rcl_x", START), lambda: file.create("w", "read", None, START), lambda: file.revoke("x")):
        with pytest.raises(ConfigError, match=r"tokens\.json are damaged"):
            use()
    assert file.path.read_bytes() == damage


@pytest.mark.parametrize("field", ["role", "created_at", "workspace"])
def test_a_field_that_makes_no_sense_is_damage(file: TokenFile, field: str) -> None:
    file.create("w", "read", None, START)
    values = json.loads(file.path.read_text())
    values["tokens"][0][field] = ""
    file.path.write_text(json.dumps(values))
    with pytest.raises(ConfigError, match=field):
        file.list()


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX's")
@pytest.mark.parametrize("mode", [0o644, 0o660, 0o602])
def test_a_file_that_others_reach_is_refused(file: TokenFile, mode: int) -> None:
    file.create("w", "read", None, START)
    TokenFile(file.path).path.chmod(mode)
    with pytest.raises(ConfigError, match="chmod 600"):
        file.list()


def test_many_processes_may_create_at_once(file: TokenFile) -> None:
    program = (
        "import sys; from pathlib import Path; from datetime import datetime, UTC; from recollect.serve.http.tokens import TokenFile\n"
        "for n in range(5): TokenFile(Path(sys.argv[1])).create('w', 'read', sys.argv[2], datetime(2026, 1, 1, tzinfo=UTC))"
    )
    running = [subprocess.Popen([sys.executable, "-c", program, str(file.path), f"process {n}"]) for n in range(6)]
    assert [process.wait() for process in running] == [0] * 6
    records = file.list()
    assert sorted(record.label or "" for record in records) == sorted(f"process {n}" for n in range(6) for _ in range(5))
    assert len({record.id for record in records}) == 30


def test_a_writer_that_died_blocks_nobody(file: TokenFile) -> None:
    file.create("w", "read", None, START)
    file.path.with_name("tokens.json.new").write_text("half")
    file.create("w", "read", None, START)
    assert len(file.list()) == 2


def test_waiting_for_another_writer_has_an_end(file: TokenFile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LOCK_ATTEMPTS_MAX", 2)
    with file._changing(), pytest.raises(StoreBusyError, match="try again"):
        TokenFile(file.path).create("w", "read", None, START)
    file.create("w", "read", None, START)


def test_ids_are_never_given_twice(tmp_path: Path) -> None:
    chances = iter([b"s" * 32, b"aaaa", b"t" * 32, b"aaaa", b"bbbb"])
    file = TokenFile(tmp_path / "tokens.json", random=lambda _: next(chances))
    assert [file.create("w", "read", None, START)[0].id for _ in range(2)] == ["61616161", "62626262"]


@pytest.mark.parametrize(
    "wrong", [{"workspace": " "}, {"workspace": "x" * 201}, {"role": "root"}, {"label": "x" * 101}, {"days": 0}, {"days": 10**9}]
)
def test_what_makes_no_sense_is_refused_before_anything_is_written(file: TokenFile, wrong: dict[str, Any]) -> None:
    values: dict[str, Any] = {"workspace": "w", "role": "read", "label": None, "now": START, **wrong}
    with pytest.raises(InputError):
        file.create(**values)
    assert not file.path.exists()


def test_there_is_an_end_to_the_number_of_tokens(file: TokenFile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TOKENS_MAX", 1)
    file.create("w", "read", None, START)
    with pytest.raises(InputError, match="the most"):
        file.create("w", "read", None, START)


def test_the_first_key_can_be_taken_once() -> None:
    first = FirstKey.create(START, "w")
    assert len(first.key) == 43
    assert [first.take("wrong", START), first.take(first.key + "x", START), first.take("é\ud800", START)] == [False] * 3
    assert [first.take(first.key, START), first.take(first.key, START)] == [True, False]


def test_the_first_key_can_be_taken_for_fifteen_minutes() -> None:
    late = START + timedelta(seconds=FIRST_KEY_SECONDS_MAX)
    assert not (first := FirstKey.create(START, "w")).take(first.key, late)
    assert first.take(first.key, late - timedelta(seconds=1))


def made(capsys: pytest.CaptureFixture[str], **options: Any) -> str:
    capsys.readouterr()
    assert token(Namespace(action="create", **{"role": "read", "label": None, "days": None, **options})) == 0
    return capsys.readouterr().out


def kept() -> list[TokenRecord]:
    return TokenFile(default_token_path()).list()


def test_the_command_prints_the_secret_alone_on_standard_output(own_place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    secret = made(capsys, role="write").strip()
    [record] = kept()
    assert TokenFile(own_place / "config" / "recollect" / "tokens.json").check(secret, record.created_at) == record
    assert (record.role, record.workspace, record.expires_at) == ("write", "default", None)


def test_the_command_creates_in_the_workspace_that_is_named(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECOLLECT_WORKSPACE", "from-settings")
    assert json.loads(made(capsys, json=True, workspace="team", days=3)).keys() == {"id", "token", "role", "workspace"}
    made(capsys)
    assert [record.workspace for record in kept()] == ["team", "from-settings"]
    assert kept()[0].expires_at == kept()[0].created_at + timedelta(days=3)


def test_a_list_shows_everything_but_secrets(capsys: pytest.CaptureFixture[str]) -> None:
    assert token(Namespace(action="list")) == 1
    secret = made(capsys, label="lap\x1btop", workspace="a").strip()
    made(capsys, workspace="b", days=1)
    assert token(Namespace(action="list")) == 0
    plain = capsys.readouterr().out
    assert token(Namespace(action="list", json=True, workspace="a")) == 0
    [shown] = json.loads(capsys.readouterr().out)
    assert (shown["id"], shown["valid"], shown["label"]) == (kept()[0].id, True, "lap\x1btop")
    assert "lap·top" in plain
    assert "until " in plain
    for never in (secret, kept()[0].sha256):
        assert never not in plain + json.dumps(shown)


def test_revoking_says_whether_there_was_such_a_token(capsys: pytest.CaptureFixture[str]) -> None:
    made(capsys)
    assert token(Namespace(action="revoke", id="nobody")) == 1
    assert token(Namespace(action="revoke", id=kept()[0].id)) == 0
    assert kept()[0].revoked
    capsys.readouterr()
    assert token(Namespace(action="revoke", id="nobody", json=True)) == 1
    assert json.loads(capsys.readouterr().out) == {"id": "nobody", "revoked": False}
    assert token(Namespace(action="list")) == 0
    assert "revoked" in capsys.readouterr().out


def test_the_commands_use_the_file_that_the_server_uses(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "c.yaml"
    config.write_text(f"server: {{tokens: {tmp_path / 'elsewhere.json'}}}")
    monkeypatch.setenv("RECOLLECT_CONFIG", str(config))
    made(capsys)
    assert len(TokenFile(tmp_path / "elsewhere.json").list()) == 1
    assert kept() == []


def test_a_command_that_does_not_say_what_to_do_is_wrong_usage() -> None:
    with pytest.raises(InputError, match="create, list, revoke"):
        token(Namespace(action=None))
    with pytest.raises(InputError, match="which token"):
        token(Namespace(action="revoke", id=None))


def test_the_commands_need_no_event_loop() -> None:
    program = "import sys, recollect.serve.cli.tokens; print({'asyncio', 'fastapi', 'uvicorn'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.strip() == "set()"
