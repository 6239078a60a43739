"""Whatever a file holds: symbols are sane, nothing is raised, and time grows with the text."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.code.languages import LANGUAGES
from recollect.code.symbols import SYMBOL_DEPTH_MAX, symbols_of
from tests.unit.code import samples_classes, samples_scripts, samples_systems

TEXTS = [text for _, text, _ in [*samples_scripts.SAMPLES.values(), *samples_systems.SAMPLES.values(), *samples_classes.SAMPLES.values()]]
PIECES = st.one_of(
    st.sampled_from("{ } ( ) [ ] < > def class function => = : ; , . \n \t \r\n \" ' ` ''' \"\"\" /* */ // # -- @a é 𝒳 \ud800".split(" ")),
    st.text(max_size=8),
)


def check(text: str, language: str) -> None:
    lines = text.count("\n") + 1
    for symbol in symbols_of(text, language):
        assert symbol.name
        assert 1 <= symbol.line_start <= symbol.line_end <= lines
        assert len(symbol.signature) <= 300
        assert len(symbol.docstring) <= 500
        assert symbol.content_hash.startswith("sha256:")


@given(language=st.sampled_from(sorted(LANGUAGES)), pieces=st.lists(PIECES, max_size=60))
def test_any_text_gives_sane_symbols(language: str, pieces: list[str]) -> None:
    check(" ".join(pieces), language)


@given(st.data())
def test_a_file_cut_anywhere_and_read_as_any_language_gives_sane_symbols(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(TEXTS))
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    check(text[:start] + text[end:], data.draw(st.sampled_from(sorted(LANGUAGES))))


@pytest.mark.parametrize("language", sorted(LANGUAGES))
@pytest.mark.parametrize("opening", ["[", "(", "{", "f([{\n", "class A {\n", "namespace a {\n", "function f() {\n"])
def test_five_thousand_open_brackets_are_read(language: str, opening: str) -> None:
    before = time.process_time()
    check(f"{opening}\n" * 5_000, language)
    assert time.process_time() - before < 5


@pytest.mark.parametrize("language", [name for name, language in LANGUAGES.items() if language.comments == "slashes"])
@pytest.mark.parametrize("text", ["/**\n" * 5_000, "/*\n" * 100 + "a = 1\n" * 100_000], ids=["many", "far from the end"])
def test_comments_that_never_end_cost_little(language: str, text: str) -> None:
    before = time.process_time()
    assert symbols_of(text, language) == []
    assert time.process_time() - before < 1


def test_patterns_that_look_like_comments_do_no_harm() -> None:
    text = "/* paths */\nconst paths = [\n" + '  "src/*",\n' * 150 + "];\n"
    assert [symbol.name for symbol in symbols_of(text, "javascript")] == ["paths"]


def test_what_is_nested_beyond_reason_is_left_out() -> None:
    depth = max(symbol.qualified.count(".") for symbol in symbols_of("namespace a {\n" * 500 + "}\n" * 500, "cpp"))
    assert depth < SYMBOL_DEPTH_MAX


def test_time_grows_with_the_number_of_symbols() -> None:
    def seconds(count: int) -> float:
        text = "".join([f"# é\n@cache\ndef f{n}(a):\n    return {n}\n\n" for n in range(count)])
        before = time.process_time()
        assert len(symbols_of(text, "python")) == count
        return time.process_time() - before

    seconds(500)
    assert seconds(16_000) < 40 * max(seconds(1_000), 0.01)
