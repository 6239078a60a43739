"""Symbols of the code that a question may be about, best first: by their names, their words and their meaning; pure."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from recollect.answers import ScopeHit
from recollect.code.mentions import is_constant, is_telling

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recollect.model import Scope
    from recollect.store.coded import WordedScope

_NAME = 0.5
_TERMS = 0.3
_MEANING = 0.2
_ALONE_MIN = 0.34  # questions about something else come as close as 0.31 to some symbol of a thousand
_VARIABLE_SHARE = 0.6  # a function tells more of what code does than a variable
_WORD = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")
_DIGITS = 6


def ranked_scopes(query: str, terms: Sequence[str], found: Sequence[WordedScope], cosines: Sequence[float] | None) -> list[ScopeHit]:
    """Return scopes with a score between 0 and 1, best first; equals by path and line.

    One that shares neither a name nor a word with the question is left out, unless it means nearly the same.
    """
    said = set(_WORD.findall(query))
    having: Counter[str] = Counter()
    for one in found:
        having.update(set(one.terms.split()).intersection(terms))
    rarity = {term: 1 / max(having[term], 1) for term in terms}  # a term that no symbol has counts as one that only one has
    whole = sum(rarity.values()) or 1.0
    hits: list[ScopeHit] = []
    for one, cosine in zip(found, cosines or [0.0] * len(found), strict=True):
        own = set(one.terms.split())
        share = sum(weight for term, weight in rarity.items() if term in own) / whole
        named = _named(one.scope, said, query)
        if not (share or named) and cosine < _ALONE_MIN:
            continue
        score = _NAME * named + _TERMS * share + _MEANING * max(cosine, 0.0)
        score *= _VARIABLE_SHARE if one.scope.kind == "variable" else 1.0
        hits.append(ScopeHit(scope=one.scope, score=round(min(score, 1.0), _DIGITS)))
    return sorted(hits, key=lambda hit: (-hit.score, hit.scope.file_path, hit.scope.line_start, hit.scope.id))


def _named(scope: Scope, said: set[str], query: str) -> float:
    """Return how surely a question names a scope: by its qualified name, its own, or the file it is in."""
    if "." in scope.qualified and any(word == scope.qualified or word.endswith("." + scope.qualified) for word in said):
        return 1.0
    if scope.name in said or any(word.endswith("." + scope.name) for word in said):
        return 0.9 if is_telling(scope.name) or is_constant(scope.name) else 0.4
    return 0.5 if scope.file_path in query else 0.0
