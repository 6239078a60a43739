from __future__ import annotations

from recollect import history_fallback


def messages(count: int) -> list[dict[str, str]]:
    return [{"role": "user" if n % 2 == 0 else "assistant", "content": f"m{n}"} for n in range(count)]


def test_up_to_ten_messages_stay_as_they_are() -> None:
    for count in (0, 1, 9, 10):
        assert history_fallback(messages(count)) == messages(count)


def test_beyond_ten_the_first_a_bridge_and_the_last_nine() -> None:
    for count in (11, 12, 40):
        kept = history_fallback(messages(count))
        assert len(kept) == 11
        assert kept[0] == messages(count)[0]
        assert kept[2:] == messages(count)[-9:]
        assert f"[{count - 10} message" in kept[1]["content"]
    assert history_fallback(messages(40))[1]["content"] == "[30 messages left out here: turns 0–15]"


def test_messages_of_any_shape_are_counted() -> None:
    odd = [*messages(5), None, 3, "text", {"content": "no role"}, *messages(5)]
    assert len(history_fallback(odd)) == 11
