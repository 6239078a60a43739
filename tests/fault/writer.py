"""A process that records turns until it is killed, saying on standard output what was acknowledged.

With a name that begins with "plain" the turns have no request id, so that nothing but the store can tell a repetition.
"""

from __future__ import annotations

import sys

from recollect.sync import Memory


def main() -> None:
    store, conversation_id, name, count = sys.argv[1:5]
    with Memory.open(store) as memory:
        conversation = memory.load_conversation(conversation_id)
        for n in range(int(count)):
            conversation.record(
                user=f"question {n} of {name}",
                assistant=f"answer {n} of {name}",
                request_id=None if name.startswith("plain") else f"{name}-{n}",
                tool_calls=[{"name": "Read", "arguments": {"file_path": f"{name}/{n}.py"}, "result": "x" * 500}],
            )
            print(f"{name}-{n}", flush=True)


if __name__ == "__main__":
    main()
