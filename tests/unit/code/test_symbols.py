"""Symbols of source files: every language names what a reader would name, where it stands and what it says of itself."""

from __future__ import annotations

import sys

import pytest

from recollect.code.languages import LANGUAGES, language_of
from recollect.code.symbols import Symbol, symbols_of
from recollect.errors import ConfigError, InputError
from recollect.identity import content_hash
from tests.unit.code import samples_classes, samples_scripts, samples_systems

SAMPLES = {**samples_scripts.SAMPLES, **samples_systems.SAMPLES, **samples_classes.SAMPLES}


def by_name(text: str, language: str) -> dict[str, Symbol]:
    return {symbol.qualified: symbol for symbol in symbols_of(text, language)}


def placed(symbols: list[Symbol]) -> list[str]:
    return [f"{one.qualified} {one.kind} {one.line_start}-{one.line_end}" for one in symbols]


@pytest.mark.parametrize("sample", SAMPLES)
def test_a_file_gives_its_symbols(sample: str) -> None:
    language, text, expected = SAMPLES[sample]
    assert placed(symbols_of(text, language)) == expected.split("\n")[1:-1]


@pytest.mark.parametrize("sample", SAMPLES)
def test_line_ends_of_windows_change_no_line(sample: str) -> None:
    language, text, expected = SAMPLES[sample]
    assert placed(symbols_of(text.replace("\n", "\r\n"), language)) == expected.split("\n")[1:-1]


@pytest.mark.parametrize("sample", SAMPLES)
def test_a_signature_is_one_line_that_says_the_name(sample: str) -> None:
    language, text, _ = SAMPLES[sample]
    for symbol in symbols_of(text, language):
        assert symbol.name in symbol.signature
        assert "\n" not in symbol.signature
        assert symbol.qualified.endswith(symbol.name)


def test_every_language_has_a_sample() -> None:
    assert {language for language, _, _ in SAMPLES.values()} == set(LANGUAGES)
    assert len(LANGUAGES) >= 14


@pytest.mark.parametrize(
    ("sample", "name", "signature", "docstring"),
    [
        ("python", "Basket", "class Basket(Base, key=int)", "What a customer takes.\n\nIt has lines.\n\nArgs: none."),
        ("python", "Basket.total", "def total(self) -> int", "Sum it."),
        ("python", "Basket.pay", "async def pay(self, amount: int) -> None", ""),
        ("python", "price", "def price(name: str, *, tax: float = RATE) -> float", ""),
        ("javascript", "add", "export function add(a, b)", "Adds two numbers."),
        ("javascript", "twice", "export const twice = async (n)", "Doubles."),
        ("javascript", "Cart.handle", "handle = (event)", ""),
        ("typescript", "Shape", "export interface Shape extends Base", "A shape."),
        ("typescript", "Circle.onClick", "onClick = (e: Event): void", ""),
        ("tsx", "Title", "export const Title = ({ title }: Props): JSX.Element", "Shows a title."),
        ("go", "Cart", "type Cart struct", "Cart holds lines. It is not safe."),
        ("go", "Cart.Add", "func (c *Cart) Add(line string) error", "Add adds a line."),
        ("rust", "Cart", "pub struct Cart<T>", "A cart.\n\nWith lines."),
        ("rust", "Cart.new", "pub fn new(size: usize) -> Self", "Makes one."),
        ("java", "Cart", "public class Cart<T> extends Base implements Pay", "A cart."),
        ("java", "Cart.pay", "public <R> R pay(int amount) throws Broke", ""),
        ("java", "Marker", "@interface Marker", ""),
        ("c", "point", "struct point", "A point in the plane."),
        ("c", "make", "struct point *make(void)", ""),
        ("cpp", "shop.inner.Cart", "template <typename T> class Cart : public Base", "A cart."),
        ("csharp", "Shop.Core.Cart", "public class Cart<T> : Base, IPay", "A cart."),
        ("ruby", "Shop.Cart", "class Cart < Base", "A cart of lines."),
        ("ruby", "Shop.Cart.build", "def build", ""),
        ("php", "Shop.Core.Cart.pay", "public static function pay(int $amount): bool", "Pays."),
        ("kotlin", "Cart", "data class Cart<T>(val size: Int) : Base(), Pay", "A cart."),
        ("swift", "Cart.pay", "func pay(amount: Int) async throws -> Bool", "Pays."),
        ("scala", "helper", "def helper(x: Int)(using y: Int): Int", ""),
        ("lua", "M.add", "function M.add(a, b)", "Adds."),
        ("bash", "hello", "hello()", "Says hello to a name."),
    ],
)
def test_a_symbol_is_told_by_its_signature_and_its_doc_comment(sample: str, name: str, signature: str, docstring: str) -> None:
    language, text, _ = SAMPLES[sample]
    symbol = by_name(text, language)[name]
    assert (symbol.signature, symbol.docstring) == (signature, docstring)


def test_names_and_lines_of_any_script() -> None:
    text = "# ü 𝒳𝒳\nclass Größe:\n\tdef naïve_λ(self, 値: str = '𝒳') -> None:\n\t\t'''Tut — nichts.'''\n\ndef 関数(): pass\n"
    found = symbols_of(text, "python")
    assert placed(found) == ["Größe class 2-4", "Größe.naïve_λ method 3-4", "関数 function 6-6"]
    assert found[1].signature == "def naïve_λ(self, 値: str = '𝒳') -> None"
    assert found[1].docstring == "Tut — nichts."
    assert found[2].content_hash == content_hash("def 関数(): pass")


def test_the_hash_covers_decorators_and_nothing_around() -> None:
    text = "x = 1\n\n@cache\ndef f():\n    return 1\n\n\ny = 2\n"
    assert by_name(text, "python")["f"].content_hash == content_hash("@cache\ndef f():\n    return 1")
    assert by_name("\n\n" + text, "python")["f"].content_hash == by_name(text, "python")["f"].content_hash
    assert by_name(text.replace("return 1", "return 2"), "python")["f"].content_hash != by_name(text, "python")["f"].content_hash


def test_what_is_local_to_a_function_is_left_out() -> None:
    text = "def f():\n    class A:\n        def g(self): pass\n    x = 1\n    def h(): pass\n"
    assert placed(symbols_of(text, "python")) == ["f function 1-5"]


def test_a_module_wrapper_of_old_javascript_hides_nothing() -> None:
    text = "(function () {\n  function start() {\n    function inner() {}\n  }\n})();\n"
    assert placed(symbols_of(text, "javascript")) == ["start function 2-4"]


def test_methods_given_to_a_prototype_belong_to_its_type() -> None:
    found = by_name("Cart.prototype.pay = function (a) {\n  return a;\n};\nmodule.exports = class Shop { open() {} };\n", "javascript")
    assert found["Cart.pay"].kind == "method"
    assert found["Shop"].kind == "class"
    assert found["Shop.open"].kind == "method"


def test_declarations_behind_an_include_guard_are_found() -> None:
    opening = '#ifndef A_H\n#define A_H\n#ifdef __cplusplus\nextern "C" {\n#endif\n'
    text = f"{opening}int add(int a, int b);\nextern int shared;\n#ifdef __cplusplus\n}}\n#endif\n#endif\n"
    found = by_name(text, "c")
    assert (found["add"].kind, found["shared"].kind) == ("function", "variable")
    assert "A_H" not in found


def test_a_variable_set_again_is_one_symbol() -> None:
    assert placed(symbols_of("a = 1\na = 2\n", "python")) == ["a variable 1-1"]


def test_long_texts_are_cut() -> None:
    text = f'def f({", ".join(f"argument_{n}" for n in range(200))}):\n    """{"word " * 1_000}"""\n' + "# more\n" * 100
    (symbol,) = symbols_of(text, "python")
    assert len(symbol.signature) <= 300
    assert len(symbol.docstring) <= 500
    assert symbol.signature.endswith("…")


@pytest.mark.parametrize("text", ["", "\n", "   \n\t\n", "# only a comment\n", "a\0b = 1\n", "x = 1\n" * 200_000])
def test_nothing_comes_of_what_is_empty_binary_or_huge(text: str) -> None:
    assert symbols_of(text, "python") == []


def test_nothing_comes_of_minified_code() -> None:
    assert symbols_of("function a(){return 1};" * 1_000, "javascript") == []
    assert symbols_of("var a = 1;\n" + f"var b = '{'x' * 150_000}';\n" + "var c = 1;\n" * 2_000, "javascript") == []


def test_broken_code_gives_what_can_be_read() -> None:
    found = by_name("def ok():\n    return 1\n\nclass Fine:\n    def m(self): pass\n    x = = 2\n\ndef broken(:\n", "python")
    assert found["ok"].line_end == 2
    assert "Fine.m" in found
    assert "f" in by_name("function f() { return 1; }\n\nfunction g( { return\n", "javascript")


def test_an_unknown_language_is_refused_before_the_parser_sees_it() -> None:
    with pytest.raises(InputError, match="'cobol' is no language"):
        symbols_of("x", "cobol")


def test_a_missing_parser_names_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ast_grep_py", None)
    with pytest.raises(ConfigError, match=r"pip install 'recollect\[code\]'"):
        symbols_of("x = 1\n", "python")


@pytest.mark.parametrize(
    ("path", "language"),
    [("a/b.py", "python"), ("B.PY", "python"), ("x.d.ts", "typescript"), ("a.h", "c"), ("Makefile", None), (".py", None), ("a.py/b", None)],
)
def test_a_language_is_known_by_its_extension(path: str, language: str | None) -> None:
    assert language_of(path) == language
