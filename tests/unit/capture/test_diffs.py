from __future__ import annotations

import time
from difflib import unified_diff

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.capture.definitions import defined_name, is_comment, language_of, nearest_definition
from recollect.capture.diffs import (
    COMPARED_LINES_MAX,
    FILES_PER_DIFF_MAX,
    FileDiff,
    Hunk,
    edit_hunk,
    lines_of,
    parse_diff,
    parse_patch,
    parse_unified,
    render,
)

GIT = """\
commit 1234
    new file mode in a message is no file

diff --git a/src/auth.py b/src/auth.py
index 1..2 100644
--- a/src/auth.py
+++ b/src/auth.py
@@ -10,4 +10,5 @@ def login_user(name):
     user = find(name)
-    return user.id
+    if user is None:
+        return None
     return 1
\x20
@@ -40 +41 @@
-a
+b
diff --git a/old.py b/new.py
similarity index 90%
rename from old.py
rename to new.py
diff --git a/born.txt b/born.txt
new file mode 100644
--- /dev/null
+++ b/born.txt
@@ -0,0 +1,2 @@
+one
+two
\\ No newline at end of file
diff --git a/gone.txt b/gone.txt
deleted file mode 100644
--- a/gone.txt
+++ /dev/null
@@ -1 +0,0 @@
-bye
diff --git a/logo.png b/logo.png
index 3..4 100644
Binary files a/logo.png and b/logo.png differ
diff --git "a/caf\\303\\251 bar.py" "b/caf\\303\\251 bar.py"
--- "a/caf\\303\\251 bar.py"
+++ "b/caf\\303\\251 bar.py"
@@ -1 +1 @@
-x
+y
--\x20
2.39.0
"""

PATCH = """\
*** Begin Patch
*** Update File: src/auth.py
@@ class Login
@@     def check(self):
         user = self.user
-        return user
+        return user or None

\x20
*** Update File: a.py
*** Move to: b.py
-x
+y
*** End of File
*** Add File: new.py
+def born():
+    pass
*** Delete File: gone.py
*** End Patch
+not part of it
"""


def told(diffs: tuple[FileDiff, ...]) -> list[tuple[str, str, int, int]]:
    return [(diff.path, diff.change_type, len(diff.lines("+")), len(diff.lines("-"))) for diff in diffs]


def test_a_git_diff_of_several_files_is_read_file_by_file() -> None:
    diffs = parse_unified(GIT)
    assert told(diffs) == [
        ("src/auth.py", "updated", 3, 2),
        ("new.py", "renamed", 0, 0),
        ("born.txt", "created", 2, 0),
        ("gone.txt", "deleted", 0, 1),
        ("logo.png", "updated", 0, 0),
        ("café bar.py", "updated", 1, 1),
    ]
    first = diffs[0].hunks[0]
    assert (first.old_start, first.new_start, first.section) == (10, 10, "def login_user(name):")
    assert [hunk.new_range for hunk in diffs[0].hunks] == [(10, 14), (41, 41)]
    assert diffs[1].renamed_from == "old.py"
    assert diffs[3].hunks[0].new_range == (1, 1), "a change that deletes its file has no lines, whatever its hunks say"


def test_plain_diffs_are_read_without_gits_headers() -> None:
    text = "Index: x\n--- x.c\t2024-01-01 00:00:00\n+++ x.c\t2024-01-02\n@@ -1,2 +1,2 @@\n-a\n+b\n c\n"
    text += "--- a/y.c\n+++ b/y.c\n@@ -1 +1 @@\n-c\n+d\n"
    assert told(parse_unified(text)) == [("x.c", "updated", 1, 1), ("y.c", "updated", 1, 1)]
    assert told(parse_unified("```diff\n" + text + "```\n")) == [("x.c", "updated", 1, 1), ("y.c", "updated", 1, 1)]
    assert told(parse_unified(text.replace("\n", "\r\n"))) == [("x.c", "updated", 1, 1), ("y.c", "updated", 1, 1)]


def test_removed_and_added_lines_that_look_like_headers_are_counted() -> None:
    assert told(parse_unified("--- a/q.sql\n+++ b/q.sql\n@@ -1,2 +1,2 @@\n--- old comment\n+++ weird\n c\n")) == [
        ("q.sql", "updated", 1, 1)
    ]


def test_headings_that_miscount_lose_no_line() -> None:
    assert told(parse_unified("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n+c\n+d\n")) == [("x", "updated", 3, 1)]
    text = "--- a/x\n+++ b/x\n@@ -1,9 +1,9 @@\n-a\n+b\n--- a/y\n+++ b/y\n@@ -1 +1 @@\n-c\n+d\n"
    assert told(parse_unified(text)) == [("x", "updated", 1, 1), ("y", "updated", 1, 1)]


def test_git_prefixes_are_taken_off_only_in_pairs() -> None:
    assert [diff.path for diff in parse_unified("--- i/x\n+++ w/x\n@@ -1 +1 @@\n-a\n+b\n")] == ["x"]
    assert [diff.path for diff in parse_unified("--- b/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n")] == ["b/x"]
    assert [diff.path for diff in parse_unified("diff --git a/run.sh b/run.sh\nold mode 100644\nnew mode 100755\n")] == ["run.sh"]
    assert told(parse_unified("diff --git a/x b/y\ncopy from x\ncopy to y\n")) == [("y", "created", 0, 0)]


def test_an_envelope_is_read_file_by_file() -> None:
    diffs = parse_patch(PATCH)
    assert told(diffs) == [
        ("src/auth.py", "updated", 1, 1),
        ("b.py", "renamed", 1, 1),
        ("new.py", "created", 2, 0),
        ("gone.py", "deleted", 0, 0),
    ]
    assert diffs[0].hunks[0].section == "def check(self):"
    assert diffs[1].renamed_from == "a.py"
    assert diffs[2].hunks[0].new_range == (1, 2)
    assert not diffs[3].before_known
    assert parse_diff(PATCH) == diffs


def test_bare_hunks_and_bare_lines_are_diffs_and_prose_is_none() -> None:
    assert told(parse_diff("@@ -3 +3 @@\n-a\n+b")) == [("", "updated", 1, 1)]
    assert told(parse_diff("-a\n+b\n\n c")) == [("", "updated", 1, 1)]
    for text in ("", "\n", "I changed it.\n- one thing", " only context", "*** Begin Patch", "diff --git", "@@"):
        assert not [diff for diff in parse_diff(text) if diff.hunks]


def test_lines_that_two_texts_share_are_context() -> None:
    assert edit_hunk("a\nb\nc", "a\nB\nc").lines == (" a", "-b", "+B", " c")
    assert edit_hunk("a\nx\nb\ny\nc\n", "a\nX\nb\nY\nc\n").lines == (" a", "-x", "+X", " b", "-y", "+Y", " c")
    assert edit_hunk("a\na", "a").lines == (" a", "-a")
    assert edit_hunk("", "a", 5) == Hunk(lines=("+a",), old_start=4, new_start=5)
    assert edit_hunk("a", "") == Hunk(lines=("-a",))


def test_a_removal_is_counted_as_git_counts_it() -> None:
    assert edit_hunk("a\nb\n", "", 9) == Hunk(lines=("-a", "-b"), old_start=9, new_start=8)
    assert edit_hunk("a", "", 1) == Hunk(lines=("-a",), old_start=1, new_start=0)
    assert edit_hunk("a\nb", "a", 9) == Hunk(lines=(" a", "-b"), old_start=9, new_start=9)
    old, new = [f"l{n}" for n in range(1, 13)], [f"l{n}" for n in range(1, 13) if n not in {9, 10}]
    (git,) = parse_unified("\n".join(unified_diff(old, new, "a/x", "b/x", n=0, lineterm="")))
    assert git.hunks == (edit_hunk("l9\nl10\n", "", 9),)


def test_what_is_removed_leaves_the_line_that_came_after_it() -> None:
    assert [edit_hunk("a", "", start).new_range for start in (9, 1, None)] == [(9, 9), (1, 1), None]


def test_long_texts_are_counted_plainly() -> None:
    old = [f"o{n}" for n in range(COMPARED_LINES_MAX + 1)]
    old[50] = "shared"
    hunk = edit_hunk("\n".join(old), "n\nshared\nm")
    assert [line[0] for line in hunk.lines] == ["-"] * len(old) + ["+"] * 3


def test_only_so_many_files_are_read() -> None:
    many = FILES_PER_DIFF_MAX + 5
    assert len(parse_unified("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n" * many)) == FILES_PER_DIFF_MAX
    assert len(parse_patch("*** Delete File: x\n" * many)) == FILES_PER_DIFF_MAX


line = st.text(st.characters(codec="utf-8", exclude_characters="\n"), max_size=12).filter(lambda text: not text.startswith(("-- ", "++ ")))
hunk_lines = st.lists(st.builds(str.__add__, st.sampled_from(" +-"), line), min_size=1, max_size=8).filter(
    lambda lines: any(one[0] != " " for one in lines)
)
numbers = st.one_of(st.tuples(st.none(), st.none()), st.tuples(st.integers(0, 10**9 - 1), st.integers(0, 10**9 - 1)))
hunks = st.builds(
    lambda lines, starts, section: Hunk(lines=tuple(lines), old_start=starts[0], new_start=starts[1], section=section),
    hunk_lines,
    numbers,
    st.sampled_from(["", "def f():", "class A"]),
)
file_diffs = st.builds(
    lambda kind, found, known: FileDiff(
        path="b.py" if kind == "renamed" else "",
        renamed_from="a.py" if kind == "renamed" else None,
        change_type=kind,
        hunks=tuple(found),
        before_known=known,
    ),
    st.sampled_from(["created", "updated", "deleted", "renamed"]),
    st.lists(hunks, min_size=1, max_size=4),
    st.booleans(),
)


@given(file_diffs)
def test_what_is_rendered_is_read_back(diff: FileDiff) -> None:
    assert parse_diff(render(diff)) == (diff,)


@given(st.text(max_size=60), st.text(max_size=60))
def test_a_hunk_holds_both_texts_whole(before: str, after: str) -> None:
    hunk = edit_hunk(before, after)
    assert [one[1:] for one in hunk.lines if one[0] != "+"] == lines_of(before)
    assert [one[1:] for one in hunk.lines if one[0] != "-"] == lines_of(after)


pieces = st.sampled_from(
    [
        *("@@ -1,2 +1,3 @@ def f", "@@", "@@@", "@@ -99999999999 +1 @@", "-a", "+b", " c", "", "\r", "\\", "-- ", "\ud800"),
        *("--- a/x", "+++ b/x", "--- /dev/null", "+++ ", "--- ", '--- "a\\777\\', '+++ "b\\303\\', '+++ "b\\n"'),
        *("diff --git a b", "diff --git ", 'diff --git "a', "rename to z", "rename from \0", "new file"),
        *("*** Begin Patch", "*** Add File: x", "*** Update File: ", "*** Move to: y", "*** Delete File: z", "*** End Patch"),
    ]
)


@given(st.one_of(st.text(), st.lists(st.one_of(pieces, st.text(max_size=5)), max_size=20).map("\n".join)))
def test_no_text_makes_reading_fail(text: str) -> None:
    for diff in (*parse_unified(text), *parse_patch(text), *parse_diff(text)):
        assert diff.change_type in {"created", "updated", "deleted", "renamed"}
        assert all(one[0] in " +-" for hunk in diff.hunks for one in hunk.lines)
        render(diff)
        nearest_definition(diff.hunks, "typescript")


@pytest.mark.parametrize(
    "text", ["@@\n" * 100_000, "--- a\n+++ b\n" * 100_000, "-x\n" * 200_000, "(" * 2_000_000, "*** Add File: x\n+" * 100_000]
)
def test_large_texts_are_read_in_moderate_time(text: str) -> None:
    begun = time.perf_counter()
    for diff in parse_diff(text):
        nearest_definition(diff.hunks, "cpp")
    assert time.perf_counter() - begun < 10


@pytest.mark.parametrize(
    ("language", "text", "name"),
    [
        ("python", "    async def login_user(self, name: str) -> None:", "login_user"),
        ("python", "class Login(Base):", "Login"),
        ("python", "    for x in range(3):", None),
        ("python", "class of things that", None),
        ("python", "# def commented():", None),
        ("python", "print(x)", None),
        ("javascript", "export default async function load(x) {", "load"),
        ("javascript", "function* walk() {", "walk"),
        ("javascript", "const add = (a, b) => a + b", "add"),
        ("javascript", "const total = xs.map(x => x.y)", None),
        ("javascript", "  handle(event) {", "handle"),
        ("javascript", "  if (a) {", None),
        ("javascript", "  } else if (a) {", None),
        ("javascript", "  useEffect(() => {", None),
        ("javascript", "describe('x', function () {", None),
        ("javascript", "  while (true) {", None),
        ("javascript", "  return go(x) {", None),
        ("typescript", "export const useThing: Hook = async (a: A): Promise<B> => {", "useThing"),
        ("typescript", "export abstract class Store<T> extends Base {", "Store"),
        ("typescript", "  private async save(cb: () => void): Promise<void> {", "save"),
        ("typescript", "export const wrap = async (", "wrap"),
        ("typescript", "type Props = {", "Props"),
        ("go", "func (s *Server) Handle(w http.ResponseWriter) error {", "Handle"),
        ("go", "func main() {", "main"),
        ("go", "type Server struct {", "Server"),
        ("go", "\tif err := f(); err != nil {", None),
        ("go", "\tgo func() {", None),
        ("rust", "    pub(crate) async fn fetch<T>(x: T) -> T {", "fetch"),
        ("rust", "impl<T> Display for Wrapper<T> {", "Wrapper"),
        ("rust", "impl Server {", "Server"),
        ("rust", "    pub fn new() -> Self {", "new"),
        ("rust", "pub struct Point {", "Point"),
        ("rust", "    match x {", None),
        ("java", "    public static List<String> names(int a) throws IOException {", "names"),
        ("java", "public class User implements Named {", "User"),
        ("java", "        return find(a);", None),
        ("java", "        for (User user : users) {", None),
        ("java", "        switch (kind) {", None),
        ("csharp", "    public async Task<int> SaveAsync(User user)", "SaveAsync"),
        ("csharp", "    using (var x = Open()) {", None),
        ("cpp", "void Engine::start(int speed) const {", "start"),
        ("cpp", "std::sort(a.begin(),", None),
        ("c", "struct user *find_user(int id)", "find_user"),
        ("c", "#include <stdio.h>", None),
        ("c", "struct point {", "point"),
        ("ruby", "  def self.call?(x)", "call"),
        ("ruby", "module Billing", "Billing"),
        ("php", "    public static function make(array $x): self", "make"),
        ("kotlin", "    suspend fun <T> List<T>.second(): T {", "second"),
        ("kotlin", "data class Point(val x: Int)", "Point"),
        ("swift", "    @objc private func tapped(_ sender: Any) {", "tapped"),
        ("swift", "extension String {", "String"),
        ("scala", "  def size: Int = 3", "size"),
        ("lua", "function M:open(x)", "open"),
        ("elixir", "  defp parse(x) do", "parse"),
        ("perl", "sub connect {", "connect"),
        ("shell", "deploy_all() {", "deploy_all"),
        ("sql", "CREATE TABLE IF NOT EXISTS public.users (", "users"),
        ("clojure", "(defn add [a b]", "add"),
        ("protobuf", "message User {", "User"),
        ("markdown", "def not_code():", None),
        (None, "def anything():", "anything"),
        (None, "", None),
    ],
)  # fmt: skip
def test_lines_that_define_something_are_told_from_those_that_do_not(language: str | None, text: str, name: str | None) -> None:
    assert defined_name(text, language) == name


@pytest.mark.parametrize(
    ("lines", "section", "name"),
    [
        ((" def a():", "     x = 1", "-    y = 2", "+    y = 3"), "", "a"),
        (("+", "+@cached", "+def new():", "+    pass"), "class A", "new"),
        (("-def old():", "+def new():", "     pass"), "", "new"),
        (("-def old():", "-    pass"), "", "old"),
        ((" class A:", "     def b(", "         self,", "     ):", "-        return 1"), "", "b"),
        ((" class A:", "     def b(self):", "         pass", "", "+    limit = 3"), "", "A"),
        (("     x = 1", "-    y = 2"), "def outer(a):", "outer"),
        (("+import os", "+", "+def f():", "+    pass"), "", "f"),
        ((" def before():", "     pass", "+x = 1"), "", "before"),
        (("+x = 1",), "what matches def f", None),
        ((" def a():",), "", None),
    ],
)
def test_a_change_belongs_to_the_definition_around_its_first_line(lines: tuple[str, ...], section: str, name: str | None) -> None:
    assert nearest_definition((Hunk(lines=tuple(one or " " for one in lines), section=section),), "python") == name


def test_braces_on_their_own_line_hide_no_function() -> None:
    lines = (" int main(void)", " {", "     int x;", "-    return 0;", "+    return 1;", " }")
    assert nearest_definition((Hunk(lines=lines),), "c") == "main"


def test_languages_follow_from_names() -> None:
    names = {
        "a/b.py": "python",
        "A.TSX": "typescript",
        "Dockerfile": "dockerfile",
        "dockerfile.dev": "dockerfile",
        "x/Makefile": "makefile",
    }
    assert {path: language_of(path) for path in names} == names
    assert [language_of(path) for path in ("", "LICENSE", "a.unheard", "py")] == [None] * 4


def test_comments_are_told_by_language() -> None:
    assert is_comment("  # x", "python")
    assert is_comment(" * x", "java")
    assert is_comment("", None)
    assert not is_comment("#include <x>", "c")
    assert not is_comment("*p = 1;", "c")
    assert not is_comment("-- x", "python")
