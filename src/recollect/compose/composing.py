"""Material and a plan → a context: shares of a budget are filled, nothing is shown twice, what does not fit is cut with a mark; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from recollect.compose.context import SECTIONS, Context, Item, LeftOut, Section
from recollect.compose.items import left_out, question_item, summary_item, symbol_item, symbol_words, turn_item
from recollect.compose.rendering import around_chars, heading, sized
from recollect.compose.wording import (
    age,
    age_of,
    file_line,
    files_in_order,
    hit_body,
    summary_body,
    turn_body,
    whole_chars,
    without_said,
    worded,
)
from recollect.distill.cues import cues, is_correction, sets_a_rule
from recollect.text import shorten

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from recollect.answers import Hit
    from recollect.compose.context import SectionName
    from recollect.compose.material import CodePiece, Material, Plan
    from recollect.model import Summary, Turn
    from recollect.store.shapes import Question

_ITEM_CHARS_MIN = 160  # what is cut to less says nothing
_HIT_CHARS_MIN = 1_500
_HITS_PER_SHARE = 4  # one hit takes at most this part of the room, so that others have some
_SYMBOL_CHARS_MIN = 1_000
_SYMBOLS_PER_SHARE = 3  # what is cut takes no more than this part of the room that others want
_CHATTER_CHARS_MAX = 60
_TOKENS_PER_CHAR_MIN = 0.2
_FITTING_ROUNDS_MAX = 9
_TITLE_CHARS_MAX = 50
_FILE_LINE_CHARS_MIN = 16  # of what stands around a path
_NO_ROOM = "no room is left in the budget of its section"
_GOAL_CHARS_MIN = 100  # so much of the goal is in wherever there is room for it at all


def composed(material: Material, plan: Plan) -> Context:
    """Return the context, within its budget in characters, and in tokens when one is given."""
    return fitted(lambda budget_chars: _Composer(material, plan, budget_chars).context(), plan)


def fitted(made: Callable[[int], Context], plan: Plan) -> Context:
    """Return the largest context of those tried that keeps its budget of tokens; halves the distance until it is near."""
    tokens = plan.budget_tokens
    largest = plan.budget_chars if tokens is None else min(plan.budget_chars, int(tokens / _TOKENS_PER_CHAR_MIN))
    best = made(largest)
    if tokens is None or best.token_estimate <= tokens:
        return best
    fits, exceeds, best = 0, largest, made(0)
    for _ in range(_FITTING_ROUNDS_MAX):
        middle = (fits + exceeds) // 2
        tried = made(middle)
        if tried.token_estimate <= tokens:
            fits, best = middle, tried
        else:
            exceeds = middle
    return best


class _Composer:
    """One context in the making: what is shown already, and how much room is left."""

    def __init__(self, material: Material, plan: Plan, budget_chars: int) -> None:
        self._material = material
        self._plan = plan
        self._room = max(budget_chars - around_chars(), 0)
        self._filled: dict[SectionName, list[Item]] = {}
        self._sizes: dict[SectionName, int] = {}
        self._used = 0
        self._left: list[LeftOut] = []
        self._asked: set[tuple[str, int]] = set()
        self._turns: set[tuple[str, int]] = set()
        self._said: dict[str, None] = {}

    def context(self) -> Context:
        """Fill the sections, those that must not be missing first; the relevant one takes what the others leave."""
        self._goal()
        self._recent()
        self._questions()
        self._files()
        self._code()
        reserve = self._summaries_size()
        waiting = self._relevant(self._material.hits, self._free() - reserve)
        self._summaries(min(self._share("summaries"), self._free()))
        for hit, reason in self._relevant_again(waiting):
            self._leave(self._left_hit(hit, reason))
        return self._whole()

    def _whole(self) -> Context:
        sections = tuple(
            Section(name=name, budget_chars=self._budget_of(name), char_count=self._taken(name), items=tuple(self._filled.get(name, ())))
            for name in SECTIONS
            if name != "history" and (name in self._plan.shares or name in self._filled)
        )
        context = Context(
            sections=sections,
            budget_chars=self._plan.budget_chars,
            budget_tokens=self._plan.budget_tokens,
            left_out=tuple(self._left),
            retrievers=self._material.retrievers,
        )
        return sized(context)

    # Room

    def _share(self, name: SectionName) -> int:
        return int(self._room * self._plan.shares.get(name, 0.0))

    def _budget_of(self, name: SectionName) -> int:
        """Return what a section may take: its share, and for what is relevant all that the others left."""
        return self._taken(name) + self._free() if name == "relevant" else max(self._share(name), self._taken(name))

    def _taken(self, name: SectionName) -> int:
        return self._sizes.get(name, 0)

    def _free(self) -> int:
        """Return how much of the whole is not taken yet."""
        return self._room - self._used

    def _left_in(self, name: SectionName, budget: int) -> int:
        """Return how many characters an item may still have in a section, its line break excluded."""
        room = min(budget - self._taken(name), self._free())
        return room - 1 - (0 if self._filled.get(name) else len(heading(name)))

    def _add(self, name: SectionName, item: Item, head: str, body: str, budget: int, item_max: int | None = None) -> bool:
        """Put an item in, cut when it is too long; False, and why it was left out, when it cannot be."""
        room = self._left_in(name, budget)
        if room < len(head) and self._filled.get(name):
            self._leave(left_out(name, item, _NO_ROOM))
            return False
        key = " ".join(body.split())
        if key and key in self._said:
            self._leave(left_out(name, item, "the same words are shown already"))
            return False
        if item_max is not None:
            room = min(room, item_max)
        made = worded(head, body, room, may_cut=room >= _ITEM_CHARS_MIN or not self._filled.get(name))
        if made is None:
            self._leave(left_out(name, item, _NO_ROOM))
            return False
        self._said[key] = None
        self._put(name, msgspec.structs.replace(item, text=made[0], is_cut=made[1]))
        return True

    def _put(self, name: SectionName, item: Item) -> None:
        added = item.char_count + (0 if name in self._sizes else len(heading(name)))
        self._filled.setdefault(name, []).append(item)
        self._sizes[name] = self._taken(name) + added
        self._used += added

    def _leave(self, left: LeftOut) -> None:
        self._left.append(left)

    # The sections

    def _goal(self) -> None:
        goal = self._material.goal
        if goal is not None and goal.text and self._plan.shares.get("goal"):
            item = question_item(goal, self._material, "what the conversation set out to do")
            head = f"### turn {goal.turn_index} · you · {age(item.age_seconds)}"
            least = len(heading("goal")) + len(head) + min(len(goal.text), _GOAL_CHARS_MIN) + 8
            if self._add("goal", item, head, goal.text, max(self._share("goal"), least)):
                self._asked.add((goal.conversation_id, goal.turn_index))

    def _recent(self) -> None:
        if "recent" not in self._plan.shares:
            return
        messages = 0
        full: str | None = None if self._plan.recent_messages else "no recent messages are asked for"
        for turn in reversed(self._material.recent):
            messages += sum(message.role in {"user", "assistant"} for message in turn.messages) or 1
            if full is None and self._filled.get("recent") and messages > self._plan.recent_messages:
                full = "older than the recent messages asked for"
            if full is not None:
                self._leave(left_out("recent", turn_item(turn, self._material, ""), full))
            elif not self._recent_turn(turn):
                full = "older than a turn for which no room was left"
        self._filled.get("recent", []).reverse()

    def _recent_turn(self, turn: Turn) -> bool:
        place = (turn.conversation_id, turn.index)
        item = turn_item(turn, self._material, "one of the most recent turns")
        status = "" if turn.status == "complete" else f" · {turn.status}"
        head = f"### turn {turn.index}{status} · {age(item.age_seconds)}"
        body = turn_body(turn, with_question=place not in self._asked)
        if not self._add("recent", item, head, body, self._share("recent")):
            return False
        self._turns.add(place)
        self._asked.add(place)
        return True

    def _questions(self) -> None:
        """Show what users asked and demanded earlier: what is to be kept in mind first, chatter last of all."""
        questions = [
            one for one in self._material.questions if (one.conversation_id, one.turn_index) not in self._asked and one.text.strip()
        ]
        lasting: list[Question] = []
        passing: list[Question] = []
        for one in questions:
            (lasting if sets_a_rule(one.text) or is_correction(one.text) else passing).append(one)
        self._listed("constraints", lasting, "sets a constraint or corrects something")
        self._listed("queries", passing, "one of the last things the user asked for")

    def _listed(self, section: SectionName, questions: list[Question], reason: str) -> None:
        if section in self._plan.shares:
            for one in questions:
                self._question(section, one, reason)
            self._filled.get(section, []).reverse()

    def _question(self, section: SectionName, one: Question, reason: str) -> None:
        item = question_item(one, self._material, reason)
        if section == "queries" and _is_chatter(one.text):
            self._leave(left_out(section, item, "small talk"))
        elif self._add(section, item, f"### turn {one.turn_index} · you · {age(item.age_seconds)}", one.text, self._share(section)):
            self._asked.add((one.conversation_id, one.turn_index))

    def _files(self) -> None:
        if "files" not in self._plan.shares:
            return
        budget = self._share("files")
        own = None if self._material.info is None else self._material.info.id
        for file in files_in_order([file for file in self._material.files if not file.temporary]):
            room = self._left_in("files", budget)
            line = file_line(file) if room > len(file.path) + _FILE_LINE_CHARS_MIN else ""
            if line and len(line) <= room:
                item = Item(
                    kind="file", id=file.path, text=line, file_path=file.path, conversation_id=own, first_turn=file.turn_index,
                    last_turn=file.turn_index,
                    age_seconds=age_of(file.timestamp, self._material.now),
                    reason=f"last touched by {file.tool_name} in turn {file.turn_index}",
                )  # fmt: skip
                self._put("files", item)
            else:
                left = LeftOut(
                    kind="file", id=file.path, section="files", conversation_id=own, first_turn=file.turn_index,
                    last_turn=file.turn_index, reason=_NO_ROOM,
                )  # fmt: skip
                self._leave(left)

    def _code(self) -> None:
        """Show symbols of the code, whole where they fit, else cut; what they are called with where their text is not at hand."""
        if "code" not in self._plan.shares:
            return
        share = self._share("code")
        known = [piece for piece in self._material.code if not self._is_left(piece)]
        waiting = [(piece, *symbol_words(piece)) for piece in sorted(known, key=lambda one: one.scope.kind == "variable")]
        while waiting:
            piece, head, body = waiting.pop(0)
            room = self._left_in("code", share)
            wanted = sum(whole_chars(after_head, after) for _, after_head, after in waiting)
            item_max = max(room - wanted, share // _SYMBOLS_PER_SHARE, _SYMBOL_CHARS_MIN)
            self._add("code", symbol_item(piece), head, body, share, None if whole_chars(head, body) <= room + 1 else item_max)

    def _is_left(self, piece: CodePiece) -> bool:
        """Tell whether a symbol is not to be shown, and leave it out then."""
        if piece.is_gone:
            self._leave(left_out("code", symbol_item(piece), "it is not in its file any more, or its file is gone"))
        elif piece.is_far:
            self._leave(left_out("code", symbol_item(piece), "the question is hardly about it"))
        return piece.is_gone or piece.is_far

    def _relevant(self, hits: Iterable[Hit], budget: int) -> list[tuple[Hit, str]]:
        """Show hits, best first; returns those that found no room."""
        waiting: list[tuple[Hit, str]] = []
        if "relevant" not in self._plan.shares:
            return waiting
        for hit in hits:
            known = self._known(hit)
            if known is not None:
                self._leave(self._left_hit(hit, known))
            elif len(self._filled.get("relevant", ())) >= self._plan.relevant_messages:
                waiting.append((hit, f"more than the {self._plan.relevant_messages} relevant messages asked for"))
            elif not self._hit(hit, budget):
                waiting.append((hit, self._left.pop().reason))
        return waiting

    def _relevant_again(self, waiting: list[tuple[Hit, str]]) -> list[tuple[Hit, str]]:
        return self._relevant([hit for hit, _ in waiting], self._taken("relevant") + self._free()) if waiting else []

    def _known(self, hit: Hit) -> str | None:
        """Return why a hit is not to be shown, or None."""
        if hit.kind == "turn" and hit.turn_index is not None and (hit.conversation_id, hit.turn_index) in self._turns:
            return "the turn is shown already"
        told = [
            item
            for section in (self._filled.get("summaries", ()), self._filled.get("relevant", ()))
            for item in section
            if item.conversation_id == hit.conversation_id and item.kind == "summary"
        ]
        first, last = hit.span
        if any(_overlap(item.first_turn, item.last_turn, first, last) for item in told):
            return "a summary that is shown tells of it"
        if hit.kind == "summary" and any(
            owner == hit.conversation_id and _overlap(index, index, first, last) for owner, index in self._turns
        ):
            return "a turn it tells of is shown"
        return None

    def _hit(self, hit: Hit, budget: int) -> bool:
        is_turn = hit.kind == "turn"
        place = f"turn {hit.turn_index}" if is_turn else f"turns {hit.first_turn}–{hit.last_turn}, summary of level {hit.level}"
        path = " › ".join(
            part for part in (hit.project, shorten(hit.conversation_title or hit.conversation_id[:8], _TITLE_CHARS_MAX)) if part
        )
        own = self._material.info is not None and hit.conversation_id == self._material.info.id
        told = "" if own else f" · {path}"
        stale = " · its files have changed since" if hit.stale else ""
        head = f"### {place} · {age(hit.age_seconds)}{told} · relevance {hit.score:.0%}{stale}"
        asked = (hit.conversation_id, hit.turn_index if hit.turn_index is not None else -1)
        item = Item(
            kind="turn" if is_turn else "summary", id=hit.id, text="", conversation_id=hit.conversation_id,
            first_turn=hit.span[0], last_turn=hit.span[1], age_seconds=hit.age_seconds, score=hit.score,
            reason=f"relevant: {', '.join(hit.explanation)}",
        )  # fmt: skip
        body = hit_body(hit, with_question=asked not in self._asked, said=self._said)
        item_max = max(budget // _HITS_PER_SHARE, _HIT_CHARS_MIN)
        if not self._add("relevant", item, head, body, budget, item_max):
            return False
        if is_turn:
            self._turns.add(asked)
            self._asked.add(asked)
        return True

    def _left_hit(self, hit: Hit, reason: str) -> LeftOut:
        return LeftOut(
            kind=hit.kind, id=hit.id, section="relevant", conversation_id=hit.conversation_id, first_turn=hit.span[0],
            last_turn=hit.span[1], reason=reason,
        )  # fmt: skip

    def _summaries_size(self) -> int:
        """Return how much room the summaries will want, at most their share."""
        if "summaries" not in self._plan.shares:
            return 0
        wanted = sum(len(summary_body(one)) + 100 for one in top(self._material.summaries, set()))
        wanted += sum(len(one.summary or "") + 100 for one in self._material.sessions)
        return min(self._share("summaries"), wanted)

    def _summaries(self, budget: int) -> None:
        """Show the highest summaries of every stretch of which no turn is shown itself, newest first until the room is taken."""
        if "summaries" not in self._plan.shares:
            return
        own = set() if self._material.info is None else {one.conversation_id for one in self._material.summaries}
        raw = {index for conversation_id, index in self._turns if conversation_id in own}
        for item in self._filled.get("relevant", ()):
            if item.kind == "summary" and item.conversation_id in own and item.first_turn is not None and item.last_turn is not None:
                raw |= set(range(item.first_turn, item.last_turn + 1))
        for one in sorted(top(self._material.summaries, raw), key=lambda one: -one.last_turn):
            head = f"### turns {one.first_turn}–{one.last_turn} · level {one.level} · {age(age_of(one.created_at, self._material.now))}"
            self._add("summaries", summary_item(one, self._material), head, summary_body(one, self._said), budget)
        for info in self._material.sessions:
            told_of = without_said(info.summary or "", self._said)
            if told_of:
                head = f"### {info.title or info.id[:8]} · {info.turn_count} turns · {age(age_of(info.updated_at, self._material.now))}"
                item = Item(
                    kind="conversation", id=info.id, text="", conversation_id=info.id, reason="one of the latest conversations",
                    age_seconds=age_of(info.updated_at, self._material.now),
                )  # fmt: skip
                self._add("summaries", item, head, told_of, budget)
        self._filled.get("summaries", []).reverse()


def top(summaries: Iterable[Summary], raw: set[int]) -> list[Summary]:
    """Return the highest summaries that tell of no turn that is shown itself, each stretch once."""
    chosen: list[Summary] = []
    for one in sorted(summaries, key=lambda one: (-one.level, one.first_turn)):
        if any(one.first_turn <= index <= one.last_turn for index in raw):
            continue
        if not any(_overlap(one.first_turn, one.last_turn, other.first_turn, other.last_turn) for other in chosen):
            chosen.append(one)
    return sorted(chosen, key=lambda one: one.first_turn)


def _overlap(first: int | None, last: int | None, other_first: int | None, other_last: int | None) -> bool:
    if first is None or last is None or other_first is None or other_last is None:
        return False
    return first <= other_last and other_first <= last


def _is_chatter(text: str) -> bool:
    return len(text) <= _CHATTER_CHARS_MAX and cues(text) == frozenset({"chatter"})
