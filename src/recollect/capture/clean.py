"""Any value → a safe JSON value: no secrets, no fences of ours, no surrogates, NULs or numbers that stores refuse.

What had to be read with tolerance is counted in `notes`, by kind, and told to the caller. Nothing after this step sees
the original text, so nothing can write, log or hash it.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from datetime import UTC, datetime
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, cast

import msgspec

from recollect.clock import iso
from recollect.errors import InputError, TooLargeError
from recollect.fence import FENCE_PREFIX, cut_fences
from recollect.limits import INTEGER_MAX, PAYLOAD_BYTES_MAX, PAYLOAD_DEPTH_MAX

if TYPE_CHECKING:
    from collections.abc import Mapping

    from recollect.capture.secrets import Redactor
    from recollect.model import Json

_HARMLESS_VALUE = re.compile(
    r"(?:.{0,3}|\*+|x+|\.+|(?i:true|false|none|null|nil|undefined|required|optional|string|text|password|secret|token)|\[[A-Z_]+\]"
    r"|\$\{?[A-Z_][A-Z0-9_]*\}?|%[A-Z_][A-Z0-9_]*%|<[^<>]*>|\{\{[^{}]*\}\}|\[redacted:[\w.-]+\])$"
)
_SHORT_WORD = re.compile(r"[a-z]{1,8}(?:-[a-z]{1,8})?$")  # what parsers and requests keep under `token` and `credentials`
_PASSWORD_NAME = re.compile(r"pass|pwd|secret", re.IGNORECASE)
_SECRET_CHARS_MIN = 6  # the shortest text that a rule can match
_INTEGER_DIGITS_MAX = 19
_INTEGER_BITS_SHOWN_MAX = 1_024
_HARMLESS_CHARS_MAX = 80  # tool names, keys and paths come again and again
_HARMLESS_MAX = 50_000


class Cleaner:
    """Cleans the values of one payload and counts what it had to change."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._harmless = redactor.harmless
        if len(self._harmless) > _HARMLESS_MAX:
            self._harmless.clear()
        self.notes: Counter[str] = Counter()

    def is_clean(self, value: object) -> bool:
        """Look at all of a value in one pass: True when there is nothing to change in it, so that it can be used as it is."""
        texts: list[str] = []
        if not _is_plain(value, texts, self._redactor, 0):
            return False
        joined = "".join(texts)
        has_only_text = joined.isascii() and "\0" not in joined and FENCE_PREFIX not in joined
        if not (has_only_text and self._redactor.finds_nothing(texts)):
            return False
        self._harmless.update(text for text in texts if len(text) <= _HARMLESS_CHARS_MAX)
        return True

    def text(self, text: str) -> str:
        """Return a text that any store can hold and anyone may read."""
        if text in self._harmless:
            return text
        cleaned = self._cleaned(text)
        if len(text) <= _HARMLESS_CHARS_MAX and cleaned == text:
            self._harmless.add(text)
        return cleaned

    def _cleaned(self, text: str) -> str:
        if not text.isascii():
            text = self._without_surrogates(text)
        if "\0" in text:
            self.notes["nul_characters"] += 1
            text = text.replace("\0", "\ufffd")
        text, fences = cut_fences(text)
        if fences:
            self.notes["fences_cut"] += fences
        if len(text) < _SECRET_CHARS_MIN:
            return text
        redacted = self._redactor.redact(text)
        if redacted is not text and redacted != text:
            self.notes["secrets_redacted"] += 1
        return redacted

    def _without_surrogates(self, text: str) -> str:
        try:
            text.encode()
        except UnicodeEncodeError:
            self.notes["lone_surrogates"] += 1
            return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return text

    def payload(self, value: object) -> Json:
        """Return a whole payload as plain JSON; one that needs no cleaning, as most, is returned as it is."""
        return value if self.is_clean(value) else self.value(value)

    def value(self, value: object, depth: int = 0) -> Json:
        """Return a value as plain JSON; times become ISO 8601 text."""
        if isinstance(value, str):
            return self.text(value)
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, int):
            return self._integer(value)
        if isinstance(value, float):
            return self._number(value)
        if depth >= PAYLOAD_DEPTH_MAX:
            self.notes["too_deep"] += 1
            return f"[cut: nested deeper than {PAYLOAD_DEPTH_MAX}]"
        if isinstance(value, dict):
            return self._mapping(cast("dict[object, object]", value), depth)
        if isinstance(value, list | tuple | set | frozenset):
            return [self.value(item, depth + 1) for item in cast("list[object]", value)]
        return self._foreign(value, depth)

    def _mapping(self, value: Mapping[object, object], depth: int) -> dict[str, Json]:
        cleaned: dict[str, Json] = {}
        for key, item in value.items():
            name = self.text(key if isinstance(key, str) else str(key))
            is_secret = self._redactor.is_secret_key(name)
            cleaned[name] = self._under_secret_key(name, item, depth + 1) if is_secret else self.value(item, depth + 1)
        return cleaned

    def _under_secret_key(self, name: str, value: object, depth: int) -> Json:
        """Redact a value by the name it stands under, whatever it looks like; `null`, `$VAR` and their like are no secrets."""
        if isinstance(value, list | tuple):
            return [self._under_secret_key(name, item, depth + 1) for item in cast("list[object]", value)]
        if value is None or isinstance(value, bool | dict) or self._is_harmless(name, value):
            return self.value(value, depth)
        self.notes["secrets_redacted"] += 1
        return "[redacted:assigned-secret]"

    @staticmethod
    def _is_harmless(name: str, value: object) -> bool:
        is_password = _PASSWORD_NAME.search(name) is not None
        if isinstance(value, int | float):
            return not is_password
        if not isinstance(value, str):
            return False
        return _HARMLESS_VALUE.match(value) is not None or (not is_password and _SHORT_WORD.match(value) is not None)

    def _integer(self, value: int) -> int | str:
        if -INTEGER_MAX - 1 <= value <= INTEGER_MAX:
            return value
        self.notes["big_integers"] += 1
        bits = value.bit_length()
        return str(value) if bits <= _INTEGER_BITS_SHOWN_MAX else f"[integer of {bits} bits]"

    def _number(self, value: float) -> float | None:
        if math.isfinite(value):
            return value
        self.notes["numbers_not_finite"] += 1
        return None

    def _foreign(self, value: object, depth: int) -> Json:
        if isinstance(value, datetime):
            return iso(value if value.tzinfo is not None else value.replace(tzinfo=UTC))
        if isinstance(value, msgspec.Struct):
            return self.value(msgspec.to_builtins(value), depth)
        if isinstance(value, bytes | bytearray):
            return self.text(bytes(value).decode(errors="replace"))
        if not isinstance(value, PurePath):
            self.notes["foreign_values"] += 1
        return self.text(str(value))


def _is_plain(value: object, texts: list[str], redactor: Redactor, depth: int) -> bool:
    """Tell whether a value is JSON that any store takes, gathering its texts on the way."""
    kind = type(value)
    if kind is str:
        if value not in redactor.harmless:
            texts.append(cast("str", value))
        return True
    if value is None or kind is bool or (kind is float and math.isfinite(cast("float", value))):
        return True
    if kind is int:
        return -INTEGER_MAX - 1 <= cast("int", value) <= INTEGER_MAX
    if depth >= PAYLOAD_DEPTH_MAX:
        return False
    if kind is list:
        for item in cast("list[object]", value):  # noqa: SIM110  a loop is faster here, where every record passes
            if not _is_plain(item, texts, redactor, depth + 1):
                return False
        return True
    return kind is dict and _is_plain_record(cast("dict[object, object]", value), texts, redactor, depth + 1)


def _is_plain_record(record: dict[object, object], texts: list[str], redactor: Redactor, depth: int) -> bool:
    for key, item in record.items():
        if type(key) is not str:
            return False
        if key not in redactor.harmless:
            texts.append(key)
        if redactor.is_secret_key(key):
            return False
        if type(item) is str:
            if item not in redactor.harmless:
                texts.append(item)
        elif not _is_plain(item, texts, redactor, depth):
            return False
    return True


def _parsed_integer(digits: str) -> int | str:
    return int(digits) if len(digits) <= _INTEGER_DIGITS_MAX else digits


def parse_json(document: str | bytes) -> Any:
    """Parse one JSON document; integers of 20 digits and more are read as text."""
    if len(document) > PAYLOAD_BYTES_MAX:
        msg = f"the document has {len(document):,} bytes, more than PAYLOAD_BYTES_MAX = {PAYLOAD_BYTES_MAX:,}: send it in parts"
        raise TooLargeError(msg)
    try:
        text = document if isinstance(document, str) else document.decode("utf-8-sig")
        return json.loads(text, parse_int=_parsed_integer)
    except UnicodeDecodeError as error:
        msg = f"the document is not UTF-8 at byte {error.start}: save it as UTF-8"
        raise InputError(msg) from error
    except RecursionError as error:
        msg = "the document is nested too deeply to be read: flatten it"
        raise InputError(msg) from error
    except ValueError as error:
        msg = f"the document is not JSON: {error}"
        raise InputError(msg) from error
