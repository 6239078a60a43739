"""A Neo4j server that dies, is away, or contends: what was acknowledged is there, nothing is doubled, clients recover."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Generator
from pathlib import Path
from typing import Any, LiteralString
from uuid import uuid4

import pytest
from neo4j import AsyncGraphDatabase
from tools.neo4j_server import PASSWORD, Server, missing

from recollect import sync
from recollect.errors import DamagedStoreError, NewerStoreError, StoreBusyError, StoreError, StoreUnavailableError
from recollect.memory import Memory
from recollect.settings import Neo4j, Settings
from recollect.store.neo4j import Neo4jEngine, open_neo4j
from recollect.store.neo4j import database as database_module
from recollect.store.neo4j.database import Connection
from recollect.store.neo4j.migrations import MIGRATIONS, migrate
from recollect.store.removal import remove
from tests.fault.lossy import LossyProxy
from tests.kit import SOAK

WRITER = Path(__file__).parent / "writer.py"
KILLS = 50 if SOAK else 2
RECOVERY_SECONDS_MAX = 300


@pytest.fixture(scope="module")
def locked_server(tmp_path_factory: pytest.TempPathFactory) -> Generator[Server]:
    """Start a server of this file's own, which asks for a password and may be killed."""
    trouble = missing()
    if trouble is not None:
        pytest.skip(trouble)
    server = Server(tmp_path_factory.mktemp("neo4j"), auth=True)
    server.start()
    server.wait()
    yield server
    server.kill()


def settings(server: Server, workspace: str, retry_seconds: float = RECOVERY_SECONDS_MAX) -> Settings:
    return Settings(store=server.url, workspace=workspace, neo4j=Neo4j(user="neo4j", password=PASSWORD, retry_seconds=retry_seconds))


def environment(server: Server, workspace: str, folder: Path, retry_seconds: float = RECOVERY_SECONDS_MAX) -> dict[str, str]:
    config = folder / "config.yaml"
    config.write_text(f"neo4j: {{user: neo4j, retry_seconds: {retry_seconds}}}\n")
    own = {"RECOLLECT_CONFIG": str(config), "RECOLLECT_NEO4J_PASSWORD": PASSWORD, "RECOLLECT_WORKSPACE": workspace}
    return {**os.environ, **own, "RECOLLECT_STORE": server.url}


def test_what_was_acknowledged_survives_kill_9_of_the_server_and_nothing_is_doubled(locked_server: Server, tmp_path: Path) -> None:
    seed = random.randrange(10**6)
    print(f"seed {seed}, {KILLS} kills")
    chance = random.Random(seed)
    workspace = f"kill-{uuid4()}"
    names = ["plain", "w"]
    with sync.Memory.open(settings=settings(locked_server, workspace)) as memory:
        conversations = {name: memory.create_conversation(project=f"p-{name}").id for name in names}
    command = [sys.executable, str(WRITER), locked_server.url]
    writers = {
        name: subprocess.Popen(
            [*command, conversations[name], name, "1000000"],
            stdout=subprocess.PIPE,
            text=True,
            env=environment(locked_server, workspace, tmp_path),
        )
        for name in names
    }
    promised: dict[str, list[str]] = {name: [] for name in names}
    for _ in range(KILLS):
        for name, writer in writers.items():
            assert writer.stdout is not None
            promised[name] += [writer.stdout.readline().strip() for _ in range(chance.randrange(1, 5))]
        time.sleep(chance.uniform(0, 0.05))
        locked_server.kill()
        locked_server.start()
        locked_server.wait()
    for name, writer in writers.items():  # they have come back by themselves
        assert writer.stdout is not None
        promised[name] += [writer.stdout.readline().strip() for _ in range(3)]
        writer.kill()
        rest = writer.stdout.read()
        promised[name] += (rest if rest.endswith("\n") else rest.rpartition("\n")[0]).split()
        writer.stdout.close()
        writer.wait()
    with sync.Memory.open(settings=settings(locked_server, workspace)) as memory:
        for name in names:
            turns = memory.load_conversation(conversations[name]).turns()
            said = Counter(f"{name}-{turn.user.split()[1]}" for turn in turns)
            assert set(promised[name]) <= set(said), "what was acknowledged is there"
            assert max(said.values()) == 1, "nothing is doubled"
            assert [turn.index for turn in turns] == list(range(len(turns)))
            assert all(len(turn.messages) == 2 and len(turn.tool_calls) == 1 for turn in turns), "no turn is half-written"
        assert memory.verify().status == "intact"


def test_a_server_that_stays_away_is_a_clear_error_and_exit_code_3(locked_server: Server, tmp_path: Path) -> None:
    workspace = f"away-{uuid4()}"
    with sync.Memory.open(settings=settings(locked_server, workspace, retry_seconds=1)) as memory:
        conversation = memory.create_conversation(project="p")
        conversation.record(user="before")
        locked_server.kill()
        try:
            with pytest.raises(StoreUnavailableError, match="no Neo4j server answers"):
                conversation.record(user="during")
            done = subprocess.run(
                [sys.executable, "-m", "recollect", "record", conversation.id, "--user", "x"],
                env=environment(locked_server, workspace, tmp_path, retry_seconds=1),
                capture_output=True,
                text=True,
                check=False,
            )
            assert (done.returncode, done.stdout) == (3, "")
            assert done.stderr.startswith("recollect: no Neo4j server answers at")
            assert done.stderr.count("\n") == 1
        finally:
            locked_server.start()
            locked_server.wait()
        conversation.record(user="after")
        assert [turn.user for turn in conversation.turns()] == ["before", "after"]


async def opened(neo4j_url: str, retry_seconds: float = 30) -> Neo4jEngine:
    return await open_neo4j(neo4j_url, Neo4j(retry_seconds=retry_seconds))


async def test_a_commit_whose_answer_was_lost_is_not_repeated(neo4j_url: str) -> None:
    workspace = f"lost-{uuid4()}"
    port = int(neo4j_url.rpartition(":")[2])
    async with LossyProxy(port, losses=0) as proxy, await Memory.open(proxy.url, workspace=workspace) as memory:
        conversation = await memory.create_conversation(project="p")
        proxy.losses = 3
        turns = [await conversation.record(user=f"question {n}", assistant="yes") for n in range(3)]
        proxy.losses = 4
        grown = await conversation.begin("open")
        proxy.losses = 6
        grown = await conversation.finish(grown, [{"role": "assistant", "content": "closed"}])
        assert proxy.lost == 6
        assert await conversation.turns() == [*turns, grown]
        assert [turn.index for turn in await conversation.turns()] == [0, 1, 2, 3]
        proxy.losses = 7
        other = await memory.create_conversation(project="p", external_id="x")
        proxy.losses = 8
        assert (await memory.forget(conversation=conversation.id)).conversations in {0, 1}
        assert [info.id for info in await memory.list_conversations()] == [other.id]


async def test_a_deadlock_is_tried_again(neo4j_url: str) -> None:
    engine = await opened(neo4j_url)
    name = f"deadlock-{uuid4()}"
    both = asyncio.Barrier(2)
    attempts: Counter[str] = Counter()

    async def lock_two(connection: Connection, first: str, second: str) -> None:
        attempts[first] += 1
        await connection.run("MERGE (n:Knot {name: $name}) SET n.by = $by", name=name + first, by=first)
        if attempts[first] == 1:
            await both.wait()
        await connection.run("MERGE (n:Knot {name: $name}) SET n.by = $by", name=name + second, by=first)

    try:
        await engine.database.write(
            lambda connection: connection.run("CREATE (:Knot {name: $name + 'a'}), (:Knot {name: $name + 'b'})", name=name)
        )
        await asyncio.gather(
            engine.database.write(lambda connection: lock_two(connection, "a", "b")),
            engine.database.write(lambda connection: lock_two(connection, "b", "a")),
        )
        assert sum(attempts.values()) > 2
        await engine.database.write(lambda connection: connection.run("MATCH (n:Knot) WHERE n.name STARTS WITH $name DELETE n", name=name))
    finally:
        await engine.close()


async def test_a_store_that_is_busy_for_too_long_says_so(neo4j_url: str) -> None:
    from neo4j.exceptions import TransientError

    engine = await opened(neo4j_url, retry_seconds=0.1)

    async def busy(_: Connection) -> None:
        raise TransientError

    with pytest.raises(StoreBusyError, match="busy"):
        await engine.database.write(busy)
    await engine.close()


async def test_many_writers_of_one_conversation_and_of_one_request(neo4j_url: str) -> None:
    workspace = f"many-{uuid4()}"
    memories = [await Memory.open(neo4j_url, workspace=workspace) for _ in range(4)]
    conversation = await memories[0].create_conversation(project="p")
    loaded = [await memory.load_conversation(conversation.id) for memory in memories]
    files = [{"name": "Read", "arguments": {"file_path": f"src/{n}.py"}} for n in range(3)]
    await asyncio.gather(*(one.record(user=f"{n} by {i}", tool_calls=files) for i, one in enumerate(loaded) for n in range(10)))
    turns = await conversation.turns()
    assert [turn.index for turn in turns] == list(range(40))
    assert len({turn.user for turn in turns}) == 40
    payload = {"request_id": "same", "project_id": "p", "messages": [{"role": "user", "content": "once"}]}
    results = await asyncio.gather(*(memory.record(payload) for memory in memories for _ in range(3)))
    assert sorted(result.status for result in results) == ["created"] + ["unchanged"] * 11
    assert len({result.conversation_id for result in results}) == 1
    elsewhere = [{**payload, "request_id": "apart", "chat_id": f"chat {n}"} for n in range(4)]
    apart = await asyncio.gather(*(memory.record(one) for memory, one in zip(memories, elsewhere, strict=True)))
    assert sorted(result.status for result in apart) == ["created"] + ["unchanged"] * 3
    assert (await memories[0].verify()).status == "intact"
    for memory in memories:
        await memory.close()


async def test_readers_never_see_half_a_turn_while_it_is_written(neo4j_url: str) -> None:
    workspace = f"half-{uuid4()}"
    async with await Memory.open(neo4j_url, workspace=workspace) as writer, await Memory.open(neo4j_url, workspace=workspace) as reader:
        conversation = await writer.create_conversation(project="p")
        turn = await conversation.begin("grows")
        seen = await reader.load_conversation(conversation.id)
        done = asyncio.Event()

        async def write() -> None:
            nonlocal turn
            for n in range(25):
                turn = await conversation.add(turn, [{"role": "assistant", "content": f"piece {n}"}])
            done.set()

        async def read() -> int:
            reads = 0
            while not done.is_set():
                (shown,) = await seen.turns()
                assert [message.sequence for message in shown.messages] == list(range(len(shown.messages)))
                reads += 1
            return reads

        _, reads = await asyncio.gather(write(), read())
        assert reads > 0


async def test_what_is_damaged_on_a_server_is_reported_and_not_served(neo4j_url: str) -> None:
    async with await Memory.open(neo4j_url, workspace=f"damage-{uuid4()}") as memory:
        conversation = await memory.create_conversation(project="p", title="whole")
        first, second = [await conversation.record(user=f"question {n}", tool_calls=[{"name": "ls", "result": "x"}]) for n in range(2)]
        assert (await memory.verify()).status == "intact"
        engine = await opened(neo4j_url)
        own = {"w": memory.workspace, "message": first.messages[0].id, "turn": second.id, "conversation": conversation.id}
        await engine.database.run("MATCH (m:Message {workspace: $w, uuid: $message}) SET m.content = 'questiom 0'", **own)
        await engine.database.run("MATCH (:Turn {workspace: $w, uuid: $turn})-[:HAS_TOOL_CALL]->(k) SET k.iteration = 'seven'", **own)
        await engine.database.run("MATCH (c:Conversation {workspace: $w, uuid: $conversation}) SET c.title = 'other'", **own)
        await engine.close()
        found = await memory.verify()
        assert found.status == "damaged"
        assert {(one.kind, one.id) for one in found.damage} == {
            ("message", first.messages[0].id),
            ("turn", second.id),
            ("conversation", conversation.id),
        }
        with pytest.raises(DamagedStoreError):
            await conversation.turns()


async def held_open(engine: Neo4jEngine, workspace: str, conversation_id: str, ready: asyncio.Event, go: asyncio.Event) -> None:
    """Remove a conversation, and wait before it is committed."""

    async def slow(transaction: Any) -> None:
        await remove(transaction, [conversation_id], keep_inherited=False)
        ready.set()
        await go.wait()

    await engine.write(workspace, slow)


async def test_forgetting_in_one_project_takes_nothing_from_another_that_is_written_to(neo4j_url: str) -> None:
    async with await Memory.open(neo4j_url, workspace=f"files-{uuid4()}") as memory:
        kept = await memory.create_conversation(project="kept")
        files = [{"name": "Read", "arguments": {"file_path": "src/a.py"}}]
        await kept.record(user="a", request_id="r", tool_calls=files)
        await kept.record(user="b", request_id="r", replace=True)
        doomed = await memory.create_conversation(project="doomed")
        engine = await opened(neo4j_url)
        ready, go = asyncio.Event(), asyncio.Event()
        removing = asyncio.create_task(held_open(engine, memory.workspace, doomed.id, ready, go))
        await ready.wait()
        recording = asyncio.create_task(kept.record(user="c", tool_calls=files, context_files=[{"file_path": "src/a.py"}]))
        await asyncio.sleep(0.2)
        go.set()
        await asyncio.gather(removing, recording)
        await engine.close()
        assert [len(turn.context_files) for turn in await kept.turns()] == [0, 1]
        assert (await memory.verify()).status == "intact"


async def test_a_conversation_created_while_its_project_is_forgotten_is_there(neo4j_url: str) -> None:
    async with await Memory.open(neo4j_url, workspace=f"create-{uuid4()}") as memory:
        doomed = await memory.create_conversation(project="p")
        engine = await opened(neo4j_url)
        ready, go = asyncio.Event(), asyncio.Event()
        removing = asyncio.create_task(held_open(engine, memory.workspace, doomed.id, ready, go))
        await ready.wait()
        creating = asyncio.create_task(memory.create_conversation(project="p"))
        await asyncio.sleep(0.2)
        go.set()
        created = (await asyncio.gather(removing, creating))[1]
        await engine.close()
        await created.record(user="there")
        assert [info.id for info in await memory.list_conversations()] == [created.id]


async def test_a_lock_that_another_keeps_is_waited_for_only_so_long(neo4j_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace = f"lock-{uuid4()}"
    settings_ = Settings(store=neo4j_url, workspace=workspace, neo4j=Neo4j(retry_seconds=0.1))
    async with await Memory.open(settings=settings_) as memory:
        conversation = await memory.create_conversation(project="p")
        async with AsyncGraphDatabase.driver(neo4j_url) as driver, driver.session() as session:
            other = await session.begin_transaction()
            await (await other.run("MATCH (p:Project {workspace: $w}) SET p.name = p.name", w=workspace)).consume()
            with monkeypatch.context() as patience:
                patience.setattr(database_module, "UNIT_SECONDS_MAX", 0.5)
                with pytest.raises(StoreBusyError):
                    await conversation.record(user="x")
            await other.rollback()
        await conversation.record(user="y")
        assert [turn.user for turn in await conversation.turns()] == ["y"]


async def test_a_turn_that_is_replaced_is_found_all_the_while(neo4j_url: str) -> None:
    workspace = f"gap-{uuid4()}"
    async with await Memory.open(neo4j_url, workspace=workspace) as writer, await Memory.open(neo4j_url, workspace=workspace) as reader:
        conversation = await writer.create_conversation(project="p")
        call = [{"name": "ls", "result": "x"}]
        await conversation.record(user="needle 0", request_id="r", tool_calls=call)
        seen = await reader.load_conversation(conversation.id)
        done = asyncio.Event()

        async def write() -> None:
            for n in range(40):
                await conversation.record(user=f"needle {n + 1}", request_id="r", replace=True, tool_calls=call)
            done.set()

        async def read() -> int:
            reads = 0
            while not done.is_set():
                assert len((await reader.search("needle")).hits) == 1
                assert len(await seen.get_tool_calls()) == 1
                reads += 1
            return reads

        assert (await asyncio.gather(write(), read()))[1] > 0


def test_a_synchronous_memory_may_be_closed_twice_and_says_that_it_is(neo4j_url: str) -> None:
    memory = sync.Memory.open(neo4j_url)
    memory.close()
    memory.close()
    with pytest.raises(StoreUnavailableError, match="closed"):
        memory.stats()


async def test_servers_may_start_at_once_and_a_newer_graph_is_refused(locked_server: Server) -> None:
    own = Neo4j(user="neo4j", password=PASSWORD)
    async with contextlib.AsyncExitStack() as opened:
        engines = [await open_neo4j(locked_server.url, own) for _ in range(4)]
        for engine in engines:
            opened.push_async_callback(engine.close)
        database = engines[0].database
        await database.run("MATCH (m:Migration) DELETE m")
        for (name,) in await database.run("SHOW CONSTRAINTS YIELD name"):
            await database.run("DROP CONSTRAINT $name", name=name)
        for (name,) in await database.run("SHOW INDEXES YIELD name, type WHERE type <> 'LOOKUP' RETURN name"):
            await database.run("DROP INDEX $name", name=name)
        await asyncio.gather(*(migrate(engine.database) for engine in engines))
        rows = await database.run("MATCH (m:Migration) RETURN m.number, m.name, m.applied_at IS NOT NULL ORDER BY m.number")
        assert rows == [[n, name, True] for n, (name, _) in enumerate(MIGRATIONS, 1)]
        constraints = await database.run("SHOW CONSTRAINTS YIELD name RETURN count(name)")
        assert constraints == [[sum("CONSTRAINT" in statement for _, step in MIGRATIONS for statement in step) + 1]]
        await database.run("CREATE (:Migration {number: 99})")
        with pytest.raises(NewerStoreError, match="newer Recollect"):
            await open_neo4j(locked_server.url, own)
        await database.run("MATCH (m:Migration {number: 99}) DELETE m")


async def test_a_step_is_taken_once_and_again_when_whoever_began_it_failed(locked_server: Server) -> None:
    own = Neo4j(user="neo4j", password=PASSWORD)
    number = len(MIGRATIONS) + 1
    count: LiteralString = "MERGE (s:Step {name: 'counted'}) SET s.taken = coalesce(s.taken, 0) + 1"
    broken: LiteralString = "THIS IS NO QUERY"
    async with contextlib.AsyncExitStack() as opened:
        engines = [await open_neo4j(locked_server.url, own) for _ in range(4)]
        for engine in engines:
            opened.push_async_callback(engine.close)
        database = engines[0].database
        with pytest.raises(StoreError, match="Invalid input"):
            await migrate(database, (*MIGRATIONS, ("broken", (count, broken))))
        assert await database.run("MATCH (m:Migration {number: $number}) RETURN m.name", number=number) == []
        await asyncio.gather(*(migrate(engine.database, (*MIGRATIONS, ("counted", (count,)))) for engine in engines))
        assert await database.run("MATCH (s:Step {name: 'counted'}) RETURN s.taken") == [[2]]  # by the one that failed, and once more
        assert await database.run("MATCH (m:Migration {number: $number}) RETURN m.name", number=number) == [["counted"]]
        await database.run("MATCH (s:Step) DETACH DELETE s")
        await database.run("MATCH (m:Migration {number: $number}) DELETE m", number=number)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"password": "wrong"}, "refuses user 'neo4j'"),
        ({"password": None, "user": None}, "refuses somebody without a name"),
        ({"database": "nowhere"}, "has no database 'nowhere'"),
        ({"port": 1}, "no Neo4j server answers at"),
    ],
)
def test_doctor_says_what_is_wrong_with_a_connection_in_one_sentence(
    locked_server: Server, tmp_path: Path, change: dict[str, str | int | None], says: str
) -> None:
    own = environment(locked_server, "default", tmp_path, retry_seconds=1)
    if "password" in change:
        own["RECOLLECT_NEO4J_PASSWORD"] = str(change["password"] or "")
    if "user" in change:
        Path(own["RECOLLECT_CONFIG"]).write_text("neo4j: {}\n")
    if "database" in change:
        own["RECOLLECT_STORE"] += f"/{change['database']}"
    if "port" in change:
        own["RECOLLECT_STORE"] = "neo4j://127.0.0.1:1"
    done = subprocess.run([sys.executable, "-m", "recollect", "doctor"], env=own, capture_output=True, text=True, check=False)
    assert done.returncode == 3, done.stderr
    assert says in done.stdout
    assert done.stderr == ""
    assert PASSWORD not in done.stdout


def test_the_password_opens_the_door_and_is_shown_nowhere(locked_server: Server, tmp_path: Path) -> None:
    own = environment(locked_server, f"auth-{uuid4()}", tmp_path)
    for command in (["doctor"], ["stats"], ["config", "show"], ["new", "--project", "p"]):
        done = subprocess.run([sys.executable, "-m", "recollect", *command], env=own, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (command, done.stderr)
        assert PASSWORD not in done.stdout + done.stderr
    assert PASSWORD not in repr(settings(locked_server, "w"))


async def test_a_server_that_is_too_old_is_refused_by_its_version(neo4j_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database_module, "SERVER_VERSION_MIN", (99, 0))
    with pytest.raises(StoreUnavailableError, match=r"Neo4j/5\.26.* too old: Recollect needs Neo4j 99\.0 or newer"):
        await Memory.open(neo4j_url)
