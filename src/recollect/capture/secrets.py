"""Secrets out of text, before anything is written, logged or hashed; the first step of capture.

The rules are gitleaks', from the package that carries them, run on RE2 in linear time: one pass finds which keywords
occur, and only their rules run. Beside them stand the rules such sets miss: passwords in URLs, `password=` and its
like, private key blocks. A secret is replaced by `[redacted:<kind>]`.
"""

from __future__ import annotations

import importlib.util
import math
import re
import tomllib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import re2

from recollect.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_RULES_PACKAGE = "secretscreen"
_RULES_FILE = "gitleaks.toml"
_KEYS_REMEMBERED_MAX = 10_000
_MATCH_MEMORY_BYTES_MAX = 64 * 1024 * 1024

# what is assigned to a name: the name, not more than a word after it, and what stands between name and value
_NAME = (
    r"(?i)(?:^|[^a-z0-9])(?:[a-z0-9_.-]{0,40}?(?:passwor[dt]|passwd|passphrase|secret[_-]?key|client[_-]?secret|api[_-]?key|apikey|access[_-]?key"
    r"|auth[_-]?token|access[_-]?token|refresh[_-]?token|private[_-]?token|db[_-]?pass|mot[_-]?de[_-]?passe)|[a-z0-9_.-]{0,40}[a-z0-9][_-]pwd)"
    r"(?:[_-]?(?:value|text|str|string|plain|new|old|prod|dev|test|staging|live|confirm|confirmation|[0-9]{1,2}))?"
)
_BETWEEN = r"['\"\\]{0,4}[ \t]{0,4}(?:=>|:=|=|:)[ \t]{0,4}"
_BARE = r"[^'\"`\s,;&(){}\[\]<>\\]"
_VALUES = (
    r'"((?:[^"\\\r\n]|\\.){3,200})"',
    r"'((?:[^'\\\r\n]|\\.){3,200})'",
    r"`([^`\r\n]{3,200})`",
    r"""\\+["']([^"'\r\n\\]{3,200})\\+["']""",  # inside a text that was quoted itself
    rf"({_BARE}{{0,200}}[0-9!@#$%^*+~?/=-]{_BARE}{{0,200}})(?:[^\w(.\[]|$)",  # no plain name of a variable or a type
)
_PLAIN_WORD = r"=([A-Za-z]{4,200})(?:[\s&]|$)"  # `password=letmein`, but no `f(password=password)`
_ENVIRONMENT = (
    r"(?m)(?:^|[\s;])[A-Z0-9_]*(?:(?:PASSWORD|PASSWD|PASSPHRASE|_PASS|_PWD|SECRET|SECRET_KEY|API_KEY|APIKEY|ACCESS_KEY)=([^\s'\"$<>;|&]{4,200})"
    r"|_TOKEN=([^\s'\"$<>;|&]{0,200}[A-Za-z][^\s'\"$<>;|&]{3,200}))"
)
_HARMLESS = (
    r"(?i)^(?:.{0,2}|\[redacted:.*|\*+|x+|\.+|…+|true|false|none|null|nil|undefined|string|str|text|bytes|password|passwd|secret|token"
    r"|required|optional|example|changeme|placeholder|your[_-].*|my[_-]?(?:password|secret)|<.*|\$.*|%.*|\{.*|(?:os|process|self|this"
    r"|config|settings|env|request|args|options|user|data|form|input|credentials?)\..*|getenv.*|environ.*|[a-z_]+\.[a-z_.]+"
    r"|/(?:home|users|root|tmp|var|opt|usr|mnt|srv|app)(?:/.*)?|(?-i:[A-Z])[a-z]+(?:str|string|type|field|input)|[a-z]+[!?]"
    r"|https?://[^@]*|[a-z]+(?:[._/-][a-z]+)+"
    r"|[\pL' ,.!?:]*\b(?:password|required|enter|invalid|must|your|secret|token|please|missing|wrong|forgot)\b[\pL' ,.!?:]*)$"
)
_GENERIC = "generic-api-key"
_NO_GENERIC_SECRET = (r"^[A-Za-z_]\w*(?:[./][A-Za-z_]\w*)+$", r"^[A-Za-z]+(?:_[A-Za-z]+)+_?[0-9]{0,2}$", r"^[A-Za-z]\w*=[A-Za-z_.]*$")
_NO_GENERIC_MATCH = (r"(?i)^['\"]?key['\"]?[\s]*[=:]",)  # a bare `key` is a dictionary's or a component's, not an API's

# where the rules of the library end: they were written for files, in which a secret stands between quotes or alone; in a sentence, a path
# or a call anything may follow it. What is known only by a name beside it is a call or a place when what follows goes on.
_LIBRARY_END = r"""(?:[\x60'"\s;]|\\[nr]|$)"""
_END = r"(?:[^A-Za-z0-9]|$)"
_ENDS = {"hashicorp-tf-password": _LIBRARY_END, _GENERIC: r"(?:[^\w(\[./:+=@-]|$)"}

FIRST_GROUP = -1  # gitleaks' way: the secret is the first group that took part, else everything


class SecretRule(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of secret: `regex` in RE2 syntax, whose `group` is the secret itself."""

    kind: str
    regex: str
    keywords: tuple[str, ...] = ()
    group: int = 0
    entropy_min: float = 0.0
    allowed: tuple[str, ...] = ()
    allowed_in_match: tuple[str, ...] = ()
    stop_words: tuple[str, ...] = ()


OWN_RULES = (
    SecretRule(
        kind="private-key-block",
        regex=(
            r"(?i)-----BEGIN[ A-Z0-9_-]{0,100}PRIVATE KEY(?: BLOCK)?-----[\s\S]*?"
            r"(?:-----END[ A-Z0-9_-]{0,100}PRIVATE KEY(?: BLOCK)?-----|\z)"
        ),
        keywords=("private key",),
    ),
    SecretRule(
        kind="url-password",
        regex=r"(?i)[a-z][a-z0-9+.-]{1,30}://[^\s/:@'\"<>]{0,200}:([^\s/@'\"<>]{1,200})@",
        keywords=("://",),
        group=1,
        allowed=(_HARMLESS,),
    ),
    SecretRule(
        kind="authorization-header",
        regex=r"(?i)authorization['\"\\]{0,4}[ \t]{0,4}[:=][ \t]{0,4}['\"\\]{0,4}(?:basic|bearer|token)[ \t]+([a-z0-9._~+/=-]{8,})",
        keywords=("authorization",),
        group=1,
        allowed=(_HARMLESS,),
    ),
    SecretRule(kind="recollect-token", regex=r"\brcl_[A-Za-z0-9_-]{40,64}", keywords=("rcl_",)),
)

# what has no shape of its own and is known only by the name it is assigned to; last, so that a better name wins
ASSIGNMENT_RULES = (
    SecretRule(
        kind="assigned-secret",
        regex=f"{_NAME}(?:{_BETWEEN}(?:{'|'.join(_VALUES)})|{_PLAIN_WORD})",
        keywords=("pass", "pwd", "secret", "apikey", "api_key", "api-key", "token", "access_key", "access-key", "accesskey"),
        group=FIRST_GROUP,
        allowed=(_HARMLESS,),
    ),
    SecretRule(
        kind="assigned-secret",
        regex=_ENVIRONMENT,
        keywords=("password=", "passwd=", "passphrase=", "_pass=", "_pwd=", "secret=", "key=", "token="),
        group=FIRST_GROUP,
        allowed=(_HARMLESS,),
    ),
)

# between texts that are looked at together: no rule's white space crosses it, and every rule's edge accepts it
_SEPARATOR = "\n\x1e\n"
_ANCHORED = re.compile(r"\^|\$|\\A|\\z|\\b")
_PLACEHOLDER = re.compile(rb"\[redacted:[\w.-]+\]$")

_SECRET_NAME = re.compile(
    r"(?:.*[_.\- ])?(?:passwor[dt]|passwd|passphrase|secret|secret_?key|client_?secret|(?:secret_?)?access_?key|api_?key|private_?key"
    r"|auth_?token|token|credentials?|authorization)$|.*[_.\- ](?:pwd|pass)$|.*(?:password|passwd|passphrase|apikey|secretkey|accesskey)$"
)
_CAMEL_CASE = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def library_rules() -> list[SecretRule]:
    """Read the rule set that the dependency carries, without importing its code."""
    spec = importlib.util.find_spec(_RULES_PACKAGE)
    if spec is None or spec.origin is None:
        msg = f"the package {_RULES_PACKAGE!r}, which carries the secret rules, is not installed: reinstall recollect"
        raise ConfigError(msg)
    with (Path(spec.origin).parent / _RULES_FILE).open("rb") as file:
        config: dict[str, Any] = tomllib.load(file)
    shared = tuple(config.get("allowlist", {}).get("regexes", ()))
    return [_library_rule(rule, shared) for rule in config["rules"] if rule.get("regex")]


def _library_rule(rule: dict[str, Any], shared: tuple[str, ...]) -> SecretRule:
    allowed, allowed_in_match, stop_words = list(shared), [], []
    for listed in rule.get("allowlists", ()):
        if listed.get("condition", "OR") != "OR" or listed.get("paths"):
            continue  # such a list speaks of files and commits, which a conversation has not
        target = allowed if listed.get("regexTarget", "secret") == "secret" else allowed_in_match
        target += listed.get("regexes", ())
        stop_words += listed.get("stopwords", ())
    return SecretRule(
        kind=rule["id"],
        regex=rule["regex"].replace(_LIBRARY_END, _ENDS.get(rule["id"], _END)),
        keywords=tuple(word.lower() for word in rule.get("keywords", ())),
        group=rule.get("secretGroup", FIRST_GROUP),
        entropy_min=float(rule.get("entropy", 0.0)),
        allowed=(*allowed, *(_NO_GENERIC_SECRET if rule["id"] == _GENERIC else ())),
        allowed_in_match=(*allowed_in_match, *(_NO_GENERIC_MATCH if rule["id"] == _GENERIC else ())),
        stop_words=tuple(stop_words),
    )


def entropy(text: bytes) -> float:
    """Return the Shannon entropy in bits per byte."""
    total = len(text)
    counts = [text.count(byte) for byte in set(text)]
    return -sum(count / total * math.log2(count / total) for count in counts)


class _CompiledRule:
    """A rule ready to run; its allow lists are compiled when something first matches."""

    def __init__(self, rule: SecretRule) -> None:
        self.rule = rule
        self.placeholder = f"[redacted:{rule.kind}]".encode()
        try:
            self._regex = re2.compile(rule.regex.encode(), _options())
        except re2.error as error:
            msg = f"the secret rule {rule.kind!r} is not a valid RE2 expression: {_said(error)}"
            raise ConfigError(msg) from error
        self._allowed: list[Any] | None = None
        self._allowed_in_match: list[Any] = []

    def spans(self, text: bytes) -> list[tuple[int, int]]:
        """Return where the secrets of this kind stand."""
        return [span for match in self._regex.finditer(text) if (span := self._secret(match)) is not None]

    def _secret(self, match: Any) -> tuple[int, int] | None:
        group = self.rule.group
        if group == FIRST_GROUP:
            group = next((n for n in range(1, self._regex.groups + 1) if match.span(n)[0] >= 0 and match.group(n)), 0)
        secret: bytes = match.group(group)
        if not secret or entropy(secret) < self.rule.entropy_min or self._is_allowed(secret, match.group(0)):
            return None
        start, end = match.span(group)
        return start, end

    def _is_allowed(self, secret: bytes, whole: bytes) -> bool:
        if self._allowed is None:
            self._allowed = [re2.compile(regex.encode(), _options()) for regex in self.rule.allowed]
            self._allowed_in_match = [re2.compile(regex.encode(), _options()) for regex in self.rule.allowed_in_match]
        lowered = secret.lower()
        return (
            any(regex.search(secret) for regex in self._allowed)
            or any(regex.search(whole) for regex in self._allowed_in_match)
            or any(word.encode() in lowered for word in self.rule.stop_words)
        )


@cache
def _options() -> Any:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MATCH_MEMORY_BYTES_MAX
    return options


class Redactor:
    """Removes secrets from text by a fixed set of rules; safe to share between threads.

    `can_join` says that a rule which finds a secret in a text also finds it among several texts with the separator
    between them, so that many small texts can be looked at in one pass.
    """

    def __init__(self, rules: Iterable[SecretRule], exceptions: Sequence[str] = (), *, can_join: bool = False) -> None:
        self.rules = tuple(rules)
        self._compiled: dict[int, _CompiledRule] = {}
        self._exceptions = [_exception(regex) for regex in exceptions]
        self._keywords: list[tuple[int, ...]] = []
        self._always = tuple(n for n, rule in enumerate(self.rules) if not rule.keywords)
        self._found_keywords = self._keyword_set()
        self.harmless: set[str] = set()  # short texts that these rules are known to leave as they are
        self._secret_keys: dict[str, bool] = {}
        self._can_join = can_join

    def _keyword_set(self) -> Any:
        by_keyword: dict[str, list[int]] = {}
        for n, rule in enumerate(self.rules):
            for word in rule.keywords:
                by_keyword.setdefault(word.lower(), []).append(n)
        found = re2.Set.SearchSet(_options())
        for word, numbers in by_keyword.items():
            found.Add(b"(?i)" + re2.escape(word.encode()))
            self._keywords.append(tuple(numbers))
        found.Compile()
        return found

    def is_secret_key(self, name: str) -> bool:
        """Tell whether a value under this name is a secret whatever it looks like."""
        known = self._secret_keys.get(name)
        if known is None:
            if len(self._secret_keys) >= _KEYS_REMEMBERED_MAX:
                self._secret_keys.clear()
            known = self._secret_keys[name] = _SECRET_NAME.match(_CAMEL_CASE.sub("_", name).lower()) is not None
        return known

    def redact(self, text: str) -> str:
        """Return the text with each secret replaced by a placeholder that names its kind."""
        raw = text.encode()
        spans = self._spans(raw)
        return self._replaced(raw, sorted(spans)).decode() if spans else text

    def finds_nothing(self, texts: Sequence[str]) -> bool:
        """Tell whether none of many texts holds a secret, in one pass over all of them; False may mean "not known"."""
        return self._can_join and not self._spans(_SEPARATOR.join(texts).encode())

    def _spans(self, raw: bytes) -> list[tuple[int, int, int]]:
        """Return where secrets stand, each with the number of its rule."""
        found = self._found_keywords.Match(raw)
        if not found and not self._always:
            return []
        numbers = {n for keyword in found or () for n in self._keywords[keyword]}.union(self._always)
        spans: list[tuple[int, int, int]] = []
        for n in numbers:
            rule = self._compiled.get(n)
            if rule is None:
                rule = self._compiled[n] = _CompiledRule(self.rules[n])
            spans += [(start, end, n) for start, end in rule.spans(raw)]
        kept = [span for span in spans if not _PLACEHOLDER.match(raw[span[0] : span[1]])]
        if self._exceptions:
            kept = [span for span in kept if not any(regex.search(raw[span[0] : span[1]]) for regex in self._exceptions)]
        return kept

    def _replaced(self, raw: bytes, spans: list[tuple[int, int, int]]) -> bytes:
        """Replace sorted spans; of those that overlap the union goes, under the name of the foremost rule."""
        pieces: list[bytes] = []
        position = 0
        while spans:
            start, end, best = spans.pop(0)
            while spans and spans[0][0] < end:
                _, other_end, other = spans.pop(0)
                end, best = max(end, other_end), min(best, other)
            pieces += [raw[position:start], self._compiled[best].placeholder]
            position = end
        return b"".join([*pieces, raw[position:]])


def _said(error: Exception) -> str:
    said = error.args[0] if error.args else error
    return said.decode(errors="replace") if isinstance(said, bytes) else str(said)


def _exception(regex: str) -> Any:
    try:
        return re2.compile(regex.encode(), _options())
    except re2.error as error:
        msg = f"the secret exception {regex!r} is not a valid RE2 expression: {_said(error)}"
        raise ConfigError(msg) from error


@cache
def default_redactor() -> Redactor:
    """Return the redactor with the shipped rules alone."""
    return redactor_with((), ())


def redactor_with(rules: Sequence[SecretRule], exceptions: Sequence[str]) -> Redactor:
    """Return a redactor with the shipped rules, the user's own, and the user's exceptions."""
    can_join = not any(_ANCHORED.search(rule.regex) for rule in rules)  # the shipped rules are all of a kind that can be joined
    shipped = sorted(library_rules(), key=lambda rule: rule.kind.startswith("generic"))  # a particular name is better
    redactor = Redactor([*rules, *OWN_RULES, *shipped, *ASSIGNMENT_RULES], exceptions, can_join=can_join)
    for n, rule in enumerate(redactor.rules):
        if rule in rules:
            redactor._compiled[n] = _CompiledRule(rule)  # noqa: SLF001  a wrong rule is an error now, not at the first match
    return redactor
