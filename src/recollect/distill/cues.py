"""What a sentence does, by its words, in English, French and Vietnamese: decide, fail, explain, conclude, leave open, or chatter; pure."""

from __future__ import annotations

import re

from recollect.text import fold

# words are folded (no accents) and lower-case; a trailing * stands for any ending
_WORDS: dict[str, str] = {
    "decision": (
        "decid* chose chosen choose prefer* instead agreed must never always should|not do|not dont from|now|on let's|use going|with "
        "we|will i|will|use settled|on rather|than "
        "choisi* plutot au|lieu il|faut toujours jamais desormais on|va|utiliser "
        "quyet|dinh chon thay|vi phai luon khong|duoc dung|nen se|dung"
    ),
    "error": (
        "error* fail* exception* crash* broken bug bugs wrong timeout timed|out denied traceback missing regression* unable cannot "
        "erreur* echec* echoue* plante* casse bogue* manquant* impossible "
        "loi that|bai hong sai thieu khong|the"
    ),
    "cause": (
        "because due|to caused|by cause root|cause reason turns|out the|problem the|issue so|that that|is|why since "
        "parce|que car a|cause raison le|probleme donc "
        "boi|vi nguyen|nhan ly|do tai|vi"
    ),
    "outcome": (
        "fixed added removed implemented passes passed works working done resolved updated changed renamed created verified "
        "replaced moved merged all|tests now finished completed "
        "corrige* ajoute* supprime* fonctionne* termine* resolu* mis|a|jour remplace* cree* "
        "da|sua da|them da|xoa xong hoat|dong hoan|thanh da|tao da|cap|nhat"
    ),
    "open": (
        "todo remaining remains still next not|yet left|to follow|up pending later open|question needs|to blocked "
        "reste encore prochain* pas|encore a|faire plus|tard "
        "con|lai chua tiep|theo can|phai sau|nay"
    ),
    "chatter": (
        "sure okay great thanks thank|you of|course happy|to let|me|know would|you|like you're|right perfect i'll let|me glad sounds|good "
        "hello hi hey welcome awesome wow haha lol good|luck take|care see|you "
        "bien|sur merci d'accord parfait bonjour salut volontiers "
        "cam|on vang xin|chao tuyet|voi"
    ),
}


def _pattern(words: str) -> re.Pattern[str]:
    spelled = [re.escape(word).replace(r"\|", r"\s+").replace(r"\*", r"\w*") for word in words.split()]
    return re.compile(r"(?<![\w'])(?:" + "|".join(spelled) + r")(?![\w'])")


_PATTERNS = {kind: _pattern(words) for kind, words in _WORDS.items()}
_RULE = re.compile(r"(?<![\w'])(?:never|always|must(?:\s+not)?|do\s+not|don't|jamais|toujours|luon|khong\s+duoc)(?![\w'])")


_CORRECTION = re.compile(
    r"(?<![\w'])(?:instead(?!\s+of\s+(?:me|you))|rather\s+than|no,|not\s+that|that's\s+wrong|i\s+meant|actually|from\s+now\s+on|stop\s+\w+ing"
    r"|plutot|au\s+lieu|non,|desormais|thay\s+vi|tu\s+gio)(?![\w'])"
)


def is_correction(text: str) -> bool:
    """Tell whether a text puts something right, or sets another course."""
    return _CORRECTION.search(fold(text).lower()) is not None


def cues(sentence: str) -> frozenset[str]:
    """Return what a sentence does."""
    plain = fold(sentence).lower()
    return frozenset(kind for kind, pattern in _PATTERNS.items() if pattern.search(plain))


def sets_a_rule(sentence: str) -> bool:
    """Tell whether a sentence says how things are to be done from now on."""
    return _RULE.search(fold(sentence).lower()) is not None
