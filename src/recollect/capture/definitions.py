"""Which language a file is in, which lines of it define something, and which definition a change belongs to; pure, used by `changes`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from recollect.capture.diffs import Hunk

SCANNED_LINES_MAX = 5_000  # of one hunk
SCANNED_HUNKS_MAX = 100
_LINE_CHARS_MAX = 300

_EXTENSIONS: dict[str, str] = {
    extension: language
    for language, extensions in {
        "python": "py pyi pyw",
        "javascript": "js jsx mjs cjs",
        "typescript": "ts tsx mts cts",
        "go": "go",
        "rust": "rs",
        "java": "java",
        "kotlin": "kt kts",
        "swift": "swift",
        "c": "c h",
        "cpp": "cc cpp cxx hpp hh hxx",
        "csharp": "cs",
        "ruby": "rb rake gemspec",
        "php": "php",
        "scala": "scala sc",
        "dart": "dart",
        "lua": "lua",
        "perl": "pl pm",
        "elixir": "ex exs",
        "erlang": "erl hrl",
        "haskell": "hs",
        "clojure": "clj cljs cljc edn",
        "groovy": "groovy gradle",
        "julia": "jl",
        "r": "r",
        "zig": "zig",
        "objective-c": "m mm",
        "shell": "sh bash zsh fish",
        "powershell": "ps1 psm1",
        "sql": "sql",
        "vue": "vue",
        "svelte": "svelte",
        "html": "html htm",
        "css": "css scss sass less",
        "xml": "xml xsd svg",
        "json": "json jsonc json5 jsonl ipynb",
        "yaml": "yaml yml",
        "toml": "toml",
        "ini": "ini cfg conf properties env",
        "markdown": "md mdx markdown",
        "restructuredtext": "rst",
        "asciidoc": "adoc",
        "text": "txt",
        "terraform": "tf tfvars hcl",
        "protobuf": "proto",
        "graphql": "graphql gql",
        "cypher": "cypher cql",
        "dockerfile": "dockerfile",
        "makefile": "mk mak",
        "cmake": "cmake",
        "nix": "nix",
    }.items()
    for extension in extensions.split()
}
_NAMES = {
    "dockerfile": "dockerfile",
    "makefile": "makefile",
    "gnumakefile": "makefile",
    "cmakelists.txt": "cmake",
    "rakefile": "ruby",
    "gemfile": "ruby",
    "jenkinsfile": "groovy",
    ".bashrc": "shell",
    ".zshrc": "shell",
}
_UNDEFINING = frozenset(
    "html css xml json yaml toml ini markdown restructuredtext asciidoc text terraform dockerfile makefile cmake nix cypher".split()
)

_SLASHES = ("//", "/*", "*/", "* ")
_COMMENTS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(
        "javascript typescript go rust java kotlin swift c cpp csharp scala dart groovy zig objective-c protobuf".split(), _SLASHES
    ),
    **dict.fromkeys("python ruby shell perl elixir yaml toml dockerfile makefile cmake r julia powershell graphql nix".split(), ("#",)),
    **dict.fromkeys(("php", "terraform"), (*_SLASHES, "#")),
    **dict.fromkeys(("vue", "svelte"), (*_SLASHES, "<!--", "-->")),
    **dict.fromkeys(("html", "xml", "markdown"), ("<!--", "-->")),
    **dict.fromkeys(("css", "cypher"), _SLASHES),
    **dict.fromkeys(("lua", "haskell", "sql"), ("--",)),
    "erlang": ("%",),
    "clojure": (";",),
    "ini": ("#", ";"),
    "restructuredtext": ("..",),
}
_COMMENTS_ELSEWHERE = ("//", "/*", "*/", "# ")

_NAME = r"([A-Za-z_$][\w$]{0,199})"
_MODIFIERS = (
    r"(?:(?:export|default|declare|public|private|protected|internal|fileprivate|open|static|final|abstract|sealed|data|inline|override"
    r"|virtual|async|unsafe|extern|const|constexpr|partial|suspend|operator|mutating|readonly|local|case|typedef"
    r"|pub(?:\([^()]{0,40}\))?|\"[^\"]{0,10}\"|@\w{1,40})\s+){0,8}"
)
_FUNCTION = re.compile(
    rf"{_MODIFIERS}(?:def|defp|defmacro|fn|fun|func|function|sub)(?:\s*\*\s*|\s+)"
    r"(?:\([^()]{0,200}\)\s*)?(?:<[^<>]{0,100}>\s*)?"  # Go's receiver, Kotlin's type parameters
    r"(?:\w{1,80}(?:<[^<>]{0,80}>)?(?:\??\.|::|:(?=\w+\())){0,8}"  # what it is a method of
    rf"{_NAME}[?!]?(?=\s*(?:[(<\[{{=:,;]|$|do\b|when\b))"
)
_TYPE = re.compile(
    rf"{_MODIFIERS}(class|struct|enum(?:\s+class)?|interface|trait|protocol|namespace|union|actor|object|record|module|defmodule|extension|type|message"
    rf"|service)\s+(?:\w{{1,80}}(?:\.|::)){{0,8}}{_NAME}(?=\s*(?:[({{<:\[=,]|$|extends\b|implements\b|where\b|permits\b|final\b|struct\b|interface\b|do\b))"
)
_TYPE_WORDS_OF = {
    "object": {"kotlin", "scala"},
    "record": {"java", "csharp"},
    "module": {"ruby", "typescript", "julia"},
    "defmodule": {"elixir"},
    "extension": {"swift", "dart"},
    "type": {"go", "typescript", "graphql", "rust"},
    "message": {"protobuf"},
    "service": {"protobuf"},
}
_IMPL = re.compile(r"(?:unsafe\s+)?impl\b\s*(?:<[^{]{0,150}?>\s+)?(?:[^{]{1,150}\sfor\s+)?(?:\w{1,80}::){0,8}" + _NAME)
_ASSIGNED = re.compile(
    rf"(?:(?:export|default|const|let|var|public|private|protected|static|readonly|declare)\s+){{0,4}}{_NAME}\s*(?::[^=]{{0,120}}|)[:=]\s*"
    r"(?:async\s*)?(?:function\b|class\b|\([^()]{0,200}\)\s*(?::[^=]{1,80})?=>|[\w$]{1,80}\s*=>)"
)
_ASSIGNED_OPEN = re.compile(rf"(?:export\s+)?(?:const|let|var)\s+{_NAME}\s*(?::[^=]{{0,120}})?=\s*(?:async\s*)?(?:<[^<>]{{0,80}}>\s*)?\($")
_SHELL = re.compile(r"([A-Za-z_][\w-]{0,199})\s*\(\)\s*(?:[{(]|$)")
_SQL = re.compile(
    r"create\s+(?:or\s+replace\s+)?(?:function|procedure|table|view|trigger)\s+(?:if\s+not\s+exists\s+)?(?:\w{1,80}\.)?" + _NAME,
    re.IGNORECASE,
)
_CLOJURE = re.compile(r"\(def(?:n-?|macro|protocol|record|type|multi)?\s+" + _NAME)

_HEAD_NAME = re.compile(r"(~?[A-Za-z_$][\w$]{0,199})\s*(?:<[^<>()]{0,80}>)?$")
_HEAD_BEFORE = re.compile(r"[\w\s<>,\[\]*&:?~@$]*$")
_WORD = re.compile(r"[A-Za-z_]+")
_METHODS = frozenset("javascript typescript java csharp c cpp dart groovy vue svelte".split())
_TYPED = frozenset("java csharp c cpp dart groovy".split())
_NEVER = frozenset(
    (
        "if else for foreach while do switch case default return throw throws try catch finally with using lock fixed synchronized new "
        "await yield delete typeof sizeof instanceof in of is as not and or import export from package function func fn def class super "
        "this self void when match unless until elif except lambda assert print go defer select where select goto require include"
    ).split()
)
_NO_HEAD = _NEVER - {"default", "export", "void", "from", "is", "as"}


def language_of(path: str) -> str | None:
    """Return the language of a file by its name or extension; None when neither is known."""
    name = path.rpartition("/")[2].lower()
    if name in _NAMES or name.startswith("dockerfile."):
        return _NAMES.get(name, "dockerfile")
    return _EXTENSIONS.get(name.rpartition(".")[2]) if "." in name else None


def is_comment(line: str, language: str | None) -> bool:
    """Tell whether a line is blank, or a comment as far as one line can tell."""
    text = line.strip()
    marks = _COMMENTS.get(language, ()) if language else _COMMENTS_ELSEWHERE
    return not text or text.startswith(marks) or (text == "*" and "* " in marks)


def defined_name(line: str, language: str | None) -> str | None:
    """Return the name that a line of code defines: a function, method, class or the like; None when it defines none."""
    if language in _UNDEFINING or not line or is_comment(line[:_LINE_CHARS_MAX], language):
        return None
    text = line[:_LINE_CHARS_MAX].strip()
    if (name := _by_keyword(text, language)) is not None:
        return name
    name = _by_language(text, language) or (_method(text, language) if language in _METHODS else None)
    return None if name in _NEVER else name


def _by_keyword(text: str, language: str | None) -> str | None:
    if found := _FUNCTION.match(text):
        return found[1]
    found = _TYPE.match(text)
    if found is None or text.endswith(";") or language not in _TYPE_WORDS_OF.get(found[1], {language}):
        return None
    if language in {"c", "cpp"} and "(" in text:  # `struct user *find(int id)` defines find
        return None
    return found[2]


def _by_language(text: str, language: str | None) -> str | None:
    found = None
    if language == "rust":
        found = _IMPL.match(text)
    elif language in {"javascript", "typescript", "vue", "svelte"}:
        found = _ASSIGNED.match(text) or _ASSIGNED_OPEN.match(text)
    elif language == "shell":
        found = _SHELL.match(text)
    elif language == "sql":
        found = _SQL.match(text)
    elif language == "clojure":
        found = _CLOJURE.match(text)
    return found[1] if found else None


def _method(text: str, language: str | None) -> str | None:
    """Find `type name(…) {` and its like: what stands before the first parenthesis is a name, behind words that no call has."""
    head, parenthesis, rest = text.partition("(")
    found = _HEAD_NAME.search(head[-_LINE_CHARS_MAX:].rstrip())
    if not parenthesis or found is None or text.endswith(";"):
        return None
    before = head[: head.rindex(found[1])]
    if not _HEAD_BEFORE.match(before) or _NO_HEAD.intersection(_WORD.findall(before)):
        return None
    is_balanced = rest.count("(") + 1 == rest.count(")")
    if text.endswith("{"):
        return found[1] if is_balanced and "=>" not in rest.rpartition(")")[2] else None
    has_type = " " in before
    if (
        language in _TYPED
        and has_type
        and (text.endswith((",", "(")) or (is_balanced and text.endswith((")", "const", "override", "noexcept"))))
    ):
        return found[1]
    return None


def nearest_definition(hunks: Sequence[Hunk], language: str | None) -> str | None:
    """Return the name of the definition that a change belongs to, as far as its hunks show; None when they show none.

    It is what the first changed line of code defines; else what encloses that line by indentation; else what the hunk's
    heading names; else the last definition before the change; else the first that was changed.
    """
    if language in _UNDEFINING:
        return None
    return next((name for hunk in hunks[:SCANNED_HUNKS_MAX] if (name := _nearest_in(hunk, language)) is not None), None)


def _nearest_in(hunk: Hunk, language: str | None) -> str | None:
    lines = hunk.lines[:SCANNED_LINES_MAX]
    changed = [n for n, line in enumerate(lines) if line[:1] in {"+", "-"}]
    if not changed:
        return None
    first = next((n for n in changed if not _is_aside(lines[n][1:], language)), changed[0])
    own = defined_name(lines[first][1:], language)
    if own is not None:
        return _added_instead(lines, first, language) or own
    name = _enclosing(lines, first, language)
    if name is None and _indent(lines[first][1:]) == 0:
        name = _first_defined((lines[n] for n in changed), language)
    return (
        name
        or defined_name(hunk.section, language)
        or _first_defined(reversed(lines[:first]), language)
        or _first_defined((lines[n] for n in changed), language)
    )


def _is_aside(text: str, language: str | None) -> bool:
    return is_comment(text, language) or text.lstrip().startswith(("@", "#["))  # decorators belong to what follows


def _added_instead(lines: Sequence[str], first: int, language: str | None) -> str | None:
    """Return the name that a removed definition got, where the block that removes it adds one."""
    for line in lines[first:]:
        if line[:1] not in {"+", "-"}:
            break
        if line[:1] == "+" and (name := defined_name(line[1:], language)) is not None:
            return name
    return None


def _enclosing(lines: Sequence[str], first: int, language: str | None) -> str | None:
    indent = _indent(lines[first][1:])
    for line in reversed(lines[:first]):
        if indent == 0:
            break
        text = line[1:]
        own = _indent(text)
        if own >= indent or not text.strip() or text.lstrip()[0] in "){]":  # the last begin no scope: they end a heading
            continue
        if (name := defined_name(text, language)) is not None:
            return name
        indent = own
    return None


def _first_defined(lines: Iterable[str], language: str | None) -> str | None:
    return next((name for line in lines if (name := defined_name(line[1:], language)) is not None), None)


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip())
