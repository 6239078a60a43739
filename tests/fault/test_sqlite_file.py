"""The SQLite file under faults: refused, migrated, damaged, full, or failing half-way."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

from recollect.errors import (
    DamagedStoreError,
    InputError,
    NewerStoreError,
    RecollectError,
    StoreBusyError,
    StoreError,
    StoreUnavailableError,
)
from recollect.running import run_now
from recollect.store.sqlite import database as database_module
from recollect.store.sqlite.database import Connection, Database
from recollect.store.sqlite.migrations import MIGRATIONS
from recollect.sync import Conversation, Memory
from tests.kit import SOAK


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


def filled(path: Path, turns: int = 3) -> str:
    with Memory.open(path) as memory:
        conversation = memory.create_conversation(project="p", title="t")
        for n in range(turns):
            conversation.record(
                user=f"question {n}",
                assistant="answer " * 50,
                tool_calls=[{"name": "Read", "arguments": {"file_path": "a.py"}, "result": "r" * 400}],
            )
        return conversation.id


def record_many(conversation: Conversation, count: int) -> None:
    for _ in range(count):
        conversation.record(user="more", assistant="x" * 5_000)


def raw(path: Path) -> apsw.Connection:
    return apsw.Connection(str(path))


def test_a_file_made_by_a_newer_version_is_refused(path: Path) -> None:
    filled(path)
    raw(path).execute("pragma user_version = 99")
    before = path.read_bytes()
    with pytest.raises(NewerStoreError, match="newer Recollect"):
        Memory.open(path)
    assert path.read_bytes() == before


def test_a_file_of_another_program_is_refused_and_untouched(path: Path) -> None:
    connection = raw(path)
    connection.execute("create table mine (x)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(StoreUnavailableError, match="another program"):
        Memory.open(path)
    assert path.read_bytes() == before
    path.write_bytes(b"this is not a database at all, but long enough to look at" * 30)
    with pytest.raises(DamagedStoreError):
        Memory.open(path)


@pytest.mark.parametrize("where", ["", "folder/", "/proc/nowhere/memory.db"])
def test_a_place_that_cannot_be_written_is_a_clear_error(where: str) -> None:
    with pytest.raises((InputError, StoreUnavailableError)):
        Memory.open(f"sqlite:{where}")


def test_an_unknown_scheme_names_the_ones_that_work() -> None:
    with pytest.raises(InputError, match="sqlite:///"):
        Memory.open("mysql://localhost")


def prepared(path: Path, migrations: tuple[Callable[[apsw.Connection], None], ...]) -> None:
    database = Database(path, durability="process", threads=False)
    try:
        database.prepare(migrations)
    finally:
        run_now(database.close())


def add_colour(connection: apsw.Connection) -> None:
    connection.execute("alter table conversation add column colour text")


def add_colour_and_fail(connection: apsw.Connection) -> None:
    connection.execute("alter table conversation add column colour text")
    msg = "the machine goes down here"
    raise apsw.IOError(msg)


def test_a_file_of_an_older_version_is_migrated_and_keeps_everything(path: Path) -> None:
    conversation_id = filled(path)
    prepared(path, (*MIGRATIONS, add_colour))
    connection = raw(path)
    assert connection.pragma("user_version") == len(MIGRATIONS) + 1
    assert connection.execute("select colour from conversation").fetchall() == [(None,)]
    connection.pragma("user_version", len(MIGRATIONS))
    connection.close()
    with Memory.open(path) as memory:
        assert len(memory.load_conversation(conversation_id).turns()) == 3
        assert memory.verify().status == "intact"


def test_a_migration_that_fails_half_way_leaves_the_file_as_it_was(path: Path) -> None:
    conversation_id = filled(path)
    with pytest.raises(StoreUnavailableError):
        prepared(path, (*MIGRATIONS, add_colour_and_fail))
    connection = raw(path)
    assert connection.pragma("user_version") == len(MIGRATIONS)
    assert "colour" not in [row[1] for row in connection.execute("pragma table_info(conversation)")]
    connection.close()
    with Memory.open(path) as memory:
        assert len(memory.load_conversation(conversation_id).turns()) == 3


def test_the_first_schema_half_way_leaves_no_table(path: Path) -> None:
    with pytest.raises(StoreUnavailableError):
        prepared(path, (MIGRATIONS[0], add_colour_and_fail))
    assert raw(path).pragma("user_version") == 1
    filled(path)


def test_when_any_statement_of_a_write_fails_nothing_of_it_is_there(
    path: Path, monkeypatch: pytest.MonkeyPatch, everything: dict[str, Any]
) -> None:
    """Every k-th statement of recording a turn with all its parts fails once, for all k."""
    with Memory.open(path) as memory:
        recorded = memory.record({**everything, "request_id": "base"})
        conversation = memory.load_conversation(recorded.conversation_id)
        before, counted = conversation.export(), memory.stats()
        count = failing = 0

        def maybe(original: Callable[..., Any]) -> Callable[..., Any]:
            def run(self: Connection, query: str, *rest: object) -> object:
                nonlocal count
                if query.lstrip().startswith(("insert", "update", "delete", "select", "commit", "\n")) and failing:
                    count += 1
                    if count == failing:
                        msg = "planted"
                        raise apsw.IOError(msg)
                return original(self, query, *rest)

            return run

        for name in ("run", "run_many", "rows", "row", "inserted"):
            monkeypatch.setattr(Connection, name, maybe(getattr(Connection, name)))
        failures = 0
        for k in range(1, 200):
            count, failing = 0, k
            try:
                memory.record(
                    {**everything, "request_id": "next", "messages": [{"role": "user", "content": "changed"}]}, conversation=conversation.id
                )
            except StoreError:
                failures += 1
                failing = 0
                assert conversation.export() == before
                after = memory.stats()
                assert (after.turns, after.messages, after.passages, after.tool_calls) == (
                    counted.turns,
                    counted.messages,
                    counted.passages,
                    counted.tool_calls,
                )
                continue
            failing = 0
            break
        print(f"{failures} statements failed, one after the other")
        assert failures > 8
        assert len(conversation.turns()) == 2
        assert memory.verify().status == "intact"


def test_a_full_disk_is_a_clear_error_and_loses_nothing(path: Path) -> None:
    conversation_id = filled(path)
    with Memory.open(path) as memory:
        connection = memory._of.store._engine._engine._database._writer._connection  # type: ignore[attr-defined]
        pages = connection.value("pragma page_count")
        connection.raw.pragma("max_page_count", pages + 2)
        conversation = memory.load_conversation(conversation_id)
        with pytest.raises(StoreUnavailableError, match="full"):
            record_many(conversation, 200)
        recorded = conversation.turns()
        connection.raw.pragma("max_page_count", 1_000_000)
        conversation.record(user="room again")
        assert conversation.turns()[:-1] == recorded
        assert memory.verify().status == "intact"


def test_a_writer_that_never_lets_go_is_a_clear_error(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    conversation_id = filled(path)
    monkeypatch.setattr(database_module, "BUSY_TIMEOUT_MS", 1)
    monkeypatch.setattr(database_module, "BUSY_ATTEMPTS_MAX", 2)
    holder = raw(path)
    holder.execute("begin immediate")
    with Memory.open(path) as memory:
        with pytest.raises(StoreBusyError, match="held by another process"):
            memory.load_conversation(conversation_id).record(user="x")
        assert len(memory.load_conversation(conversation_id).turns()) == 3, "reading goes on"
        holder.execute("rollback")
        memory.load_conversation(conversation_id).record(user="x")


def test_damage_is_reported_by_verify_and_never_served(path: Path) -> None:
    conversation_id = filled(path)
    connection = raw(path)
    connection.execute("update message set content = 'tampered' where role = 'user' and sequence = 0")
    connection.execute("update tool_call set tool_name = 'Wrote' where pk = 2")
    connection.execute("update conversation set title = 'other'")
    connection.close()
    with Memory.open(path) as memory:
        checked = memory.verify()
        assert checked.status == "damaged"
        assert [damage.kind for damage in checked.damage] == ["conversation", "turn", "turn"]
        with pytest.raises(DamagedStoreError, match="recollect verify"):
            memory.load_conversation(conversation_id).turns()
        assert memory.load_conversation(conversation_id).turns(first=2)[0].index == 2, "its neighbours are"


def test_a_content_that_does_not_match_its_hash_is_named(path: Path) -> None:
    filled(path)
    connection = raw(path)
    connection.execute("update message set content = 'Question 0' where content = 'question 0'")
    connection.close()
    with Memory.open(path) as memory:
        assert [(damage.kind, damage.reason) for damage in memory.verify().damage] == [("message", "the content does not match its hash")]


def test_the_full_text_index_is_checked_against_its_passages(path: Path) -> None:
    filled(path)
    connection = raw(path)
    connection.execute("update passage set terms = 'something else' where number = (select min(number) from passage)")
    connection.close()
    with Memory.open(path) as memory:
        assert ("index", "passage_terms") in [(damage.kind, damage.id) for damage in memory.verify().damage]


@pytest.mark.parametrize("name", ["passage_terms", "scope_terms", "insight_terms"])
def test_every_full_text_index_is_checked(path: Path, name: str) -> None:
    filled(path)
    connection = raw(path)
    connection.execute(f"insert into {name} (rowid, terms) values (1234567, 'nobody wrote this')")  # noqa: S608  one of three names
    connection.close()
    with Memory.open(path) as memory:
        assert [damage.id for damage in memory.verify().damage if damage.kind == "index"] == [name]


def test_flipped_bits_are_found_or_harmless(path: Path, tmp_path: Path) -> None:
    """Bit flips in the main file: a read gives what was written, or an error of ours; verify sees what can be seen."""
    conversation_id = filled(path, turns=20)
    with Memory.open(path) as memory:
        document = memory.load_conversation(conversation_id).export()
    whole = path.read_bytes()
    seed = random.randrange(10**6)
    flips = 1_000 if SOAK else 60
    random_ = random.Random(seed)
    reported = 0
    for _ in range(flips):
        copy = tmp_path / "flipped.db"
        data = bytearray(whole)
        data[random_.randrange(100, len(data))] ^= 1 << random_.randrange(8)
        copy.write_bytes(bytes(data))
        for extra in ("-wal", "-shm"):
            Path(str(copy) + extra).unlink(missing_ok=True)
        try:
            with Memory.open(copy) as memory:
                status = memory.verify().status
                reported += status == "damaged"
                served = memory.load_conversation(conversation_id).export()
                assert served == document or status == "damaged"
        except RecollectError:  # anything else would be a traceback for a user
            reported += 1
    print(f"seed {seed}: {reported} of {flips} flips reported")
    assert reported > 0


def test_a_torn_journal_loses_only_what_was_not_yet_folded_in(path: Path, tmp_path: Path) -> None:
    """The journal cut or flipped at random: what is read back is a beginning of what was written, whole turns only."""
    seed = random.randrange(10**6)
    random_ = random.Random(seed)
    print(f"seed {seed}")
    with Memory.open(path) as memory:
        conversation = memory.create_conversation(project="p")
        for n in range(15):
            conversation.record(user=f"question {n}", assistant="answer " * 20)
        journal = Path(str(path) + "-wal").read_bytes()
        main = path.read_bytes()
        expected = [turn.user for turn in conversation.turns()]
    for n in range(200 if SOAK else 15):
        copy = tmp_path / f"torn{n}.db"
        copy.write_bytes(main)
        torn = bytearray(journal[: random_.randrange(len(journal))])
        if n % 2 and torn:
            torn[random_.randrange(len(torn))] ^= 0xFF
        Path(str(copy) + "-wal").write_bytes(bytes(torn))
        with Memory.open(copy) as memory:
            found = memory.list_conversations()
            users = [turn.user for turn in memory.load_conversation(found[0].id).turns()] if found else []
            assert users == expected[: len(users)]
            assert memory.verify().status == "intact"
        shutil.rmtree(copy, ignore_errors=True)


def test_the_schema_can_be_read_by_any_sqlite_tool(path: Path) -> None:
    import sqlite3

    filled(path)
    connection = sqlite3.connect(path)
    rows = connection.execute(
        "select role, content from turn join message on message.turn_pk = turn.pk order by sequence limit 1"
    ).fetchall()
    assert rows == [("user", "question 0")]
    connection.close()


def test_the_file_is_its_owners_alone(path: Path) -> None:
    filled(path)
    assert path.stat().st_mode & 0o077 == 0


def test_a_file_from_before_recall_is_counted_and_embedded_again(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    with Memory.open(path, worker=False) as memory:
        conversation = memory.create_conversation(project="p")
        for n in range(7):
            conversation.record(user=f"alpha question {n}", assistant="beta answer")
        memory.distill()
        before = memory.search("alpha beta")
    raw = apsw.Connection(str(path))
    raw.execute(
        """
        drop index code_change_by_rename; drop table job; alter table workspace drop column embedder;
        create table job (
            pk integer primary key, conversation_pk integer not null references conversation (pk) on delete cascade, kind text not null,
            state text not null, again integer not null, attempts integer not null, since text not null, due_at text not null,
            lease_until text, token text, error text, unique (conversation_pk, kind)
        ) strict;
        create index turn_by_end on turn (ended_at); create index tool_call_by_name on tool_call (tool_name, status);
        drop trigger passage_untallied; drop table tally;
        drop trigger plane_spoilt; drop table plane;
        drop index turn_by_expiry; drop index summary_by_expiry; alter table turn drop column expires_at;
        alter table summary drop column expires_at; drop table open_request;
        drop trigger scope_terms_removed; drop trigger scope_terms_changed; drop table scope_terms;
        drop index scope_by_qualified; alter table scope drop column qualified; alter table scope drop column docstring;
        alter table scope drop column terms; drop table indexed_file; alter table project drop column code_root;
        alter table access drop column file_hash; drop index turn_by_time; drop table model_call;
        drop trigger insight_terms_added; drop trigger insight_terms_removed; drop table insight_terms; drop index insight_by_expiry;
        alter table insight drop column task; alter table insight drop column author; alter table insight drop column source_hash;
        alter table insight drop column last_turn; alter table insight drop column terms; alter table insight drop column expires_at;
        create trigger passage_terms_added after insert on passage begin
            insert into passage_terms (rowid, terms) values (new.number, new.terms);
        end;
        pragma user_version = 4;
        """
    )
    raw.close()
    with Memory.open(path, worker=False) as memory:
        lexical = memory.search("alpha beta")
        assert lexical.retrievers["meaning"].startswith("not run: there are no vectors here yet")
        assert lexical.hits
        memory.distill()
        assert [hit.id for hit in memory.search("alpha beta").hits] == [hit.id for hit in before.hits]
        assert memory.search("alpha beta").retrievers == before.retrievers
        assert memory.verify().status == "intact"


def test_counts_for_search_follow_whatever_is_done_to_turns(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    with Memory.open(path, worker=False) as memory:
        conversation = memory.create_conversation(project="p")
        for n in range(9):
            conversation.record(user=f"alpha {n}", assistant="beta", request_id=f"r{n}")
        branch = conversation.branch(from_turn=3)
        branch.record(user="gamma", assistant="delta")
        memory.distill()
        conversation.record(user="other", assistant="words", request_id="r8", replace=True)
        memory.distill()
        conversation.delete()
        memory.distill()
        raw = apsw.Connection(str(path))
        kept = "select number >> 20, level, count(*), sum(length) from passage group by 1, 2"
        assert set(raw.execute("select * from tally where passages <> 0")) == set(raw.execute(kept))
        planes = [row for row in raw.execute("select block, model, length(heads) from plane") if row[1]]
        counted = dict(raw.execute("select number >> 10, count(*) from embedding group by 1"))
        assert {block: size // 7 for block, _, size in planes} == counted
        raw.close()
