"""A store, driven at random, always agrees with a plain dictionary that does the same."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any
from uuid import uuid4

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, rule, run_state_machine_as_test

from recollect.clock import CountedIds, ManualClock
from recollect.errors import ConflictError
from recollect.running import run_now
from recollect.settings import Settings
from recollect.store import Store
from recollect.sync import Memory
from tests.kit import SOAK, START

words = st.sampled_from(["login", "token", "cache", "index", "retry", "queue"])
texts = st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\0"), max_size=30) | words
calls = st.lists(st.fixed_dictionaries({"name": words, "result": texts}), max_size=3)


class StoreMachine(RuleBasedStateMachine):
    """Conversations and their histories, in the store and in dictionaries."""

    conversations = Bundle("conversations")
    server: str | None = None

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.url = self.server or f"sqlite://{Path(self.folder.name) / 'memory.db'}"
        self.workspace = f"machine-{uuid4()}"
        self.clock, self.ids = ManualClock(START), CountedIds()
        self.memory = self.opened()
        self.history: dict[str, list[tuple[int, str]]] = {}  # what each conversation shows: index and user text
        self.next_index: dict[str, int] = {}
        self.parent: dict[str, tuple[str, int]] = {}
        self.requests: dict[tuple[str, str], tuple[int, str]] = {}

    def opened(self) -> Memory:
        return Memory.open(settings=Settings(store=self.url, workspace=self.workspace), clock=self.clock, ids=self.ids)

    def teardown(self) -> None:
        self.memory.close()
        self.folder.cleanup()

    @rule(target=conversations, tags=st.lists(words, max_size=2))
    def create(self, tags: list[str]) -> str:
        made = self.memory.create_conversation(project="p", tags=tags)
        self.history[made.id], self.next_index[made.id] = [], 0
        return made.id

    @rule(conversation=conversations, user=texts, assistant=words, tool_calls=calls)
    def record(self, conversation: str, user: str, assistant: str, tool_calls: list[dict[str, Any]]) -> None:
        turn = self.memory.load_conversation(conversation).record(user=user, assistant=assistant, tool_calls=tool_calls)
        assert turn.index == self.next_index[conversation]
        self.history[conversation].append((turn.index, turn.user))
        self.next_index[conversation] += 1

    @rule(conversation=conversations, request=st.sampled_from(["r1", "r2"]), user=words)
    def record_request(self, conversation: str, request: str, user: str) -> None:
        known = self.requests.get((conversation, request))
        loaded = self.memory.load_conversation(conversation)
        request_id = f"{conversation}/{request}"
        if known is not None and known[1] != user:
            try:
                loaded.record(user=user, request_id=request_id)
            except ConflictError:
                return
            raise AssertionError(known)
        turn = loaded.record(user=user, request_id=request_id)
        if known is None:
            self.requests[conversation, request] = (turn.index, user)
            self.history[conversation].append((turn.index, user))
            self.next_index[conversation] += 1
        else:
            assert turn.index == known[0]

    @rule(target=conversations, conversation=conversations, data=st.data())
    def branch(self, conversation: str, data: st.DataObject) -> Any:
        shown = self.history[conversation]
        if not shown:
            return multiple()
        index = data.draw(st.sampled_from([n for n, _ in shown]))
        made = self.memory.load_conversation(conversation).branch(from_turn=index)
        self.history[made.id] = [(n, user) for n, user in shown if n <= index]
        self.next_index[made.id] = index + 1
        self.parent[made.id] = (conversation, index)
        return made.id

    @rule(conversation=consumes(conversations))
    def delete(self, conversation: str) -> None:
        self.memory.load_conversation(conversation).delete()
        del self.history[conversation]

    @rule(conversation=conversations)
    def export_and_import(self, conversation: str) -> None:
        document = self.memory.load_conversation(conversation).export()
        with tempfile.TemporaryDirectory() as folder, Memory.open(f"sqlite://{folder}/other.db") as other:
            assert other.import_conversation(document).export() == document

    @rule()
    def close_and_open(self) -> None:
        self.memory.close()
        self.memory = self.opened()

    @rule(seconds=st.floats(min_value=-10_000, max_value=10_000))
    def move_the_clock(self, seconds: float) -> None:
        self.clock.advance(seconds)

    @invariant()
    def the_same_is_shown(self) -> None:
        assert {info.id for info in self.memory.list_conversations(limit=1_000)} == set(self.history)
        for conversation, expected in self.history.items():
            loaded = self.memory.load_conversation(conversation)
            assert [(turn.index, turn.user) for turn in loaded.turns()] == expected
            assert loaded.info.turn_count == len(expected)
            sequences = [message.sequence for turn in loaded.turns() for message in turn.messages]
            assert sequences == sorted(set(sequences))

    @invariant()
    def what_is_stored_is_whole(self) -> None:
        assert self.memory.verify().status == "intact"

    @invariant()
    def a_word_is_found_exactly_where_it_was_said(self) -> None:
        for conversation, expected in self.history.items():
            hits = self.memory.load_conversation(conversation).search_history("login", limit=1_000).hits
            said = {n for n, user in expected if user == "login"}
            assert said <= {hit.turn_index for hit in hits}


StoreMachine.TestCase.settings = settings(max_examples=300 if SOAK else 25, stateful_step_count=30 if SOAK else 20)
TestStore = StoreMachine.TestCase


def test_a_neo4j_store_behaves_as_the_model_does_too(neo4j_url: str) -> None:
    class OnNeo4j(StoreMachine):
        server = neo4j_url

    few = settings(max_examples=60 if SOAK else 4, stateful_step_count=20 if SOAK else 12, deadline=None)
    run_state_machine_as_test(OnNeo4j, settings=few)


def test_the_machine_runs_without_an_event_loop() -> None:
    """The synchronous door is the same class: nothing in it waits."""

    async def nothing(_: Store | None) -> int:
        return 7

    assert run_now(nothing(None)) == 7
