"""However an engine sends a conversation, and however often again, what is recorded is what was said: nothing lost, nothing doubled."""

from __future__ import annotations

import tempfile
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.sync import Memory
from tests.kit import SOAK

Message = dict[str, Any]


def turn_of(number: int, steps: int) -> list[Message]:
    """Return a turn that says what no other says: a question, some steps with tools, an answer."""
    messages: list[Message] = [{"role": "user", "content": f"question {number}"}]
    for step in range(steps):
        call = {"id": f"t{number}-{step}", "name": "cat", "arguments": {"path": f"{number}.py"}}
        messages.append({"role": "assistant", "content": f"step {number} {step}", "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": f"result {number} {step}"})
    return [*messages, {"role": "assistant", "content": f"answer {number}"}]


def sendings(truth: list[list[Message]], style: str, window: int) -> list[list[Message]]:
    """Return the lists of messages that an engine of a style sends, in order."""
    sent: list[list[Message]] = []
    for n, turn in enumerate(truth):
        before = [message for earlier in truth[max(n - window, 0) if style == "window" else 0 : n] for message in earlier]
        if style == "only new":
            sent.append(turn)
        elif style == "question first":
            sent += [[*before, turn[0]], [*before, *turn]]
        elif style == "step by step":
            sent += [[*before, *turn[: size + 1]] for size in range(len(turn))]
        else:
            sent.append([*before, *turn])
    return sent


@settings(max_examples=400 if SOAK else 40)
@given(
    steps=st.lists(st.integers(min_value=0, max_value=2), min_size=1, max_size=6),
    style=st.sampled_from(["only new", "whole", "window", "question first", "step by step"]),
    window=st.integers(min_value=1, max_value=3),
    with_ids=st.booleans(),
    again=st.lists(st.booleans(), min_size=40, max_size=40),
)
def test_what_is_recorded_is_what_was_said(steps: list[int], style: str, window: int, with_ids: bool, again: list[bool]) -> None:
    truth = [turn_of(n, count) for n, count in enumerate(steps)]
    may_repeat = with_ids or style != "only new"  # a new turn without an id cannot be told from the same one sent again
    with tempfile.TemporaryDirectory() as folder, Memory.open(f"{folder}/memory.db") as memory:
        for n, messages in enumerate(sendings(truth, style, window)):
            payload = {"project_id": "p", "chat_id": "c", "messages": messages, **({"request_id": f"r{n}"} if with_ids else {})}
            for _ in range(2 if again[n % len(again)] and may_repeat else 1):
                memory.record(payload)
        infos = memory.list_conversations()
        assert len(infos) == 1
        turns = memory.load_conversation(infos[0].id).turns()
        assert [[m.content for m in turn.messages] for turn in turns] == [
            [message["content"] for message in turn if message["role"] != "tool"] for turn in truth
        ]
        assert [[c.result.result if c.result else None for c in turn.tool_calls] for turn in turns] == [
            [message["content"] for message in turn if message["role"] == "tool"] for turn in truth
        ]
        assert memory.verify().status == "intact"
