"""How the changes of a line are found: by what it says, through renames, and by number where nothing is said."""

from __future__ import annotations

import pytest

from recollect.model import CodeChange
from recollect.store.traced import PlacedChange
from recollect.text import MARK
from recollect.trace.lines import added_lines, by_content, by_range, lineage, renamed_from


def changed(diff: str | None = None, lines: tuple[int, int] | None = None, *, added: int | None = None, removed: int | None = None,
            kind: str = "updated") -> CodeChange:  # fmt: skip
    start, end = lines or (None, None)
    return CodeChange(
        file_path="src/a.py", change_type=kind, diff=diff, line_start=start, line_end=end, lines_added=added, lines_removed=removed
    )


def placed(name: str, path: str, summary: str | None = None) -> PlacedChange:
    kind = "renamed" if summary is not None and summary.startswith("renamed") else "updated"
    return PlacedChange(
        id=name, file_path=path, change_type=kind, change_summary=summary, lines_added=None, lines_removed=None, turn_id="t",
        conversation_id="c", turn_index=0, request_id=None, at=None,
    )  # fmt: skip


def names(changes: list[PlacedChange]) -> list[str]:
    return [one.id for one in changes]


def test_the_added_lines_of_a_diff_are_those_behind_a_plus() -> None:
    assert added_lines("@@\n-x = 1\n+x = 2\n y\n+z") == ["x = 2", "z"]


def test_the_name_of_a_file_is_no_added_line_and_an_increment_is_one() -> None:
    assert added_lines("--- a/a.c\n+++ b/a.c\n@@ -1 +1,2 @@\n i\n+++count;") == ["++count;"]


def test_of_a_diff_of_several_files_only_the_own_one_counts() -> None:
    diff = "--- a/b.py\n+++ b/b.py\n@@ -1 +1 @@\n-1\n+other = 1\n--- a/src/a.py\n+++ b/src/a.py\n@@ -1 +1 @@\n-1\n+own = 1\n"
    assert added_lines(diff, "src/a.py") == ["own = 1"]
    assert by_content([changed(diff)], "other = 1") == []
    assert by_content([changed(diff)], "own = 1") == [0]


def test_lines_behind_the_mark_of_a_cut_diff_still_count() -> None:
    assert added_lines(f"@@ -1,9 +1,9 @@\n+first\n{MARK.format(shown=9, total=99)}\n+last") == ["first", "last"]


@pytest.mark.parametrize(
    ("kind", "summary", "path"),
    [
        ("renamed", "renamed from src/a.py", "src/a.py"),
        ("renamed", "renamed from src/a.py (+1 −1)", "src/a.py"),
        ("renamed", "renamed from src/a.py (moved (again))", "src/a.py"),
        ("renamed", "renamed from app/(shop)/a (copy).tsx", "app/(shop)/a (copy).tsx"),
        ("renamed", "renamed from src/a (copy).py (+1)", "src/a (copy).py"),
        ("renamed", "renamed from src/a.py (a summary that was too long to…", "src/a.py"),
        ("renamed", "renamed a.py", None),
        ("renamed", None, None),
        ("updated", "renamed from src/a.py", None),
    ],
)
def test_a_rename_says_the_path_from_before(kind: str, summary: str | None, path: str | None) -> None:
    assert renamed_from(kind, summary) == path


def test_a_file_is_followed_under_the_name_it_had_before_its_rename() -> None:
    changes = [placed("3", "b.py"), placed("2", "b.py", "renamed from a.py"), placed("1", "a.py")]
    assert names(lineage(changes, "b.py")) == ["3", "2", "1"]


def test_another_file_that_takes_the_old_name_is_not_followed() -> None:
    changes = [placed("3", "a.py"), placed("2", "b.py", "renamed from a.py"), placed("1", "a.py")]
    assert names(lineage(changes, "b.py")) == ["2", "1"]


def test_another_file_that_had_the_new_name_before_is_not_followed() -> None:
    changes = [placed("3", "b.py", "renamed from a.py"), placed("2", "a.py"), placed("1", "b.py")]
    assert names(lineage(changes, "b.py")) == ["3", "2"]


def test_a_file_that_is_renamed_there_and_back_is_followed_in_order() -> None:
    changes = [placed("5", "a.py"), placed("4", "a.py", "renamed from b.py"), placed("3", "b.py"),
               placed("2", "b.py", "renamed from a.py"), placed("1", "a.py")]  # fmt: skip
    assert names(lineage(changes, "a.py")) == ["5", "4", "3", "2", "1"]


def test_a_new_file_of_a_name_that_a_rename_took_away_has_its_own_changes_alone() -> None:
    changes = [placed("5", "c.py", "renamed from b.py"), placed("4", "a.py"), placed("3", "a.py"), placed("2", "b.py", "renamed from a.py"),
               placed("1", "a.py")]  # fmt: skip
    assert names(lineage(changes, "a.py")) == ["4", "3"]
    assert names(lineage(changes, "c.py")) == ["5", "2", "1"]


def test_a_name_that_was_renamed_away_tells_the_rename_and_what_the_file_was_before() -> None:
    changes = [placed("5", "c.py", "renamed from a.py"), placed("4", "a.py"), placed("3", "b.py"), placed("2", "b.py", "renamed from a.py"),
               placed("1", "a.py")]  # fmt: skip
    assert names(lineage(changes, "a.py")) == ["5", "4"]
    assert names(lineage(changes, "b.py")) == ["3", "2", "1"]
    assert names(lineage(changes[-2:], "a.py")) == ["2", "1"]
    assert names(lineage(changes[3:4], "a.py")) == ["2"]


def test_a_rename_that_was_recorded_twice_is_one() -> None:
    changes = [placed("3", "b.py", "renamed from a.py (+0)"), placed("2", "b.py", "renamed from a.py"), placed("1", "a.py")]
    assert names(lineage(changes, "b.py")) == ["3", "1"]
    assert names(lineage(changes, "a.py")) == ["3", "1"]


def test_a_line_is_found_by_its_words_whatever_its_spaces() -> None:
    changes = [changed("@@\n+\tif  x is None:"), changed("@@\n-    if x is None:"), changed(None), changed("@@\n+    if x is None:")]
    assert by_content(changes, "  if x is None: ") == [0, 3]


@pytest.mark.parametrize("text", ["", "    ", "}", ");", "# ---"])
def test_a_line_that_stands_everywhere_is_not_found_by_its_words(text: str) -> None:
    assert by_content([changed(f"@@\n+{text}")], text) == []


def test_a_line_in_the_range_of_a_change_was_made_by_it() -> None:
    changes = [changed(lines=(10, 12), added=3, removed=1)]
    assert [by_range(changes, line) for line in (9, 10, 12, 13)] == [[], [0], [0], []]


def test_a_change_without_an_end_is_of_one_line() -> None:
    one = CodeChange(file_path="src/a.py", line_start=4, lines_added=1, lines_removed=1)
    assert [by_range([one], line) for line in (3, 4, 5)] == [[], [0], []]


def test_a_later_change_above_moves_the_line_and_one_below_does_not() -> None:
    older = changed(lines=(10, 10), added=1, removed=1)
    above, below = changed(lines=(1, 5), added=5, removed=0), changed(lines=(50, 52), added=3, removed=0)
    assert by_range([above, older], 15) == [1]
    assert by_range([above, older], 10) == []
    assert by_range([below, older], 10) == [1]


def test_counts_that_nobody_told_move_nothing() -> None:
    assert by_range([changed(lines=(1, 5), added=5), changed(lines=(10, 10), added=1, removed=1)], 10) == [1]


def test_a_change_that_only_removed_lines_made_none() -> None:
    removal, older = changed(lines=(5, 5), added=0, removed=4), changed(lines=(9, 9), added=1, removed=0)
    assert by_range([removal, older], 5) == [1]


def test_a_change_of_unknown_place_is_passed_over() -> None:
    assert by_range([changed(added=9, removed=0), changed(lines=(3, 3), added=1, removed=1)], 3) == [1]


def test_what_a_file_had_before_it_was_deleted_is_not_in_it() -> None:
    assert by_range([changed(kind="deleted", removed=9), changed(lines=(1, 9), added=9, removed=0)], 3) == []


NUMBERED = (
    "@@ -10,4 +10,5 @@\n ten\n-eleven\n+11\n+11 and a half\n twelve\n thirteen\n@@ -30,2 +31,3 @@\n thirty\n+30 and a half\n thirty-one"
)


def test_a_diff_with_numbers_tells_its_own_lines_from_those_around_them() -> None:
    """Told is 10–33, of which only 11, 12 and 32 were made; the rest stood there, or between the two places."""
    one = changed(NUMBERED, lines=(10, 33), added=3, removed=1)
    assert [line for line in range(1, 50) if by_range([one], line)] == [11, 12, 32]


def test_a_line_goes_back_through_the_places_of_a_diff_exactly() -> None:
    """Of today's lines 9, 10, 13, 20, 31, 33 and 40 the older change made what was 9, 10, 12, 19, 30, 31 and 38."""
    for today, before in ((9, 9), (10, 10), (13, 12), (20, 19), (31, 30), (33, 31), (40, 38)):
        older = [changed(lines=(line, line), added=1, removed=1) for line in (before - 1, before, before + 1)]
        assert by_range([changed(NUMBERED, lines=(10, 33), added=3, removed=1), *older], today) == [2], today


def test_lines_below_a_removal_go_back_by_what_it_removed_however_it_is_numbered() -> None:
    for start in (4, 5):  # git names the line before what is gone, others the one that took its place
        gone = changed(f"@@ -5,2 +{start},0 @@\n-five\n-six", added=0, removed=2)
        older = changed(lines=(7, 7), added=1, removed=1)
        assert by_range([gone, older], 5) == [1]
        assert by_range([gone, older], 4) == []


def test_a_cut_diff_tells_no_numbers_and_the_range_decides() -> None:
    cut = changed(f"@@ -1,99 +1,99 @@\n+one\n{MARK.format(shown=9, total=99)}\n+last", lines=(1, 99), added=99, removed=99)
    assert by_range([cut], 50) == [0]


def test_lines_whose_former_text_is_not_known_are_found_and_move_nothing() -> None:
    replaced = changed("@@ -5,0 +5,2 @@\n+five\n+six\n\\ what stood here before is not known", lines=(5, 6), added=2)
    older = changed(lines=(8, 8), added=1, removed=1)
    assert by_range([replaced, older], 6) == [0]
    assert by_range([replaced, older], 8) == [1]


def test_a_line_that_nobody_changed_is_nobodys() -> None:
    assert by_range([], 1) == []
    assert by_range([changed(lines=(1, 3), added=3, removed=0)], 100) == []
