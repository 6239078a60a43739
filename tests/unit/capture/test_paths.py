"""Where a path lies: below the root of its project, in whichever worktree and through whichever link it is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from recollect.capture.paths import Place, place_of, place_of_root

FILE = "src/auth/pay.py"


def repository(folder: Path, *worktrees: Path) -> str:
    """Make a repository with linked worktrees, as git lays them out."""
    (folder / ".git").mkdir(parents=True)
    for tree in worktrees:
        git_dir = folder / ".git" / "worktrees" / tree.name
        git_dir.mkdir(parents=True)
        (git_dir / "gitdir").write_text(f"{tree}/.git\n")
        tree.mkdir(parents=True)
        (tree / ".git").write_text(f"gitdir: {git_dir}\n")
    return str(folder)


def test_a_path_in_any_worktree_of_a_repository_is_one_below_its_root(tmp_path: Path) -> None:
    beside, inside = tmp_path / "shop-wt", tmp_path / "shop" / ".worktrees" / "feature"
    root = repository(tmp_path / "shop", beside, inside)
    places = [place_of(root), place_of(str(beside)), place_of(str(inside / "src")), place_of_root(root)]
    for place in places:
        assert place.root == root
        for tree in (root, beside, inside):
            assert place.locate(f"{tree}/{FILE}") == FILE
    assert place_of(str(beside)).locate(FILE) == FILE
    assert place_of(str(inside / "src")).locate("auth/pay.py:7") == FILE
    outside = f"{tmp_path}/shop-wt-2/{FILE}"
    assert [place.locate(outside) for place in places] == [outside] * len(places)


def test_a_worktree_that_its_repository_does_not_know_is_known_by_what_it_says_itself(tmp_path: Path) -> None:
    root = repository(tmp_path / "shop")
    (tmp_path / "moved").mkdir()
    (tmp_path / "moved" / ".git").write_text(f"gitdir: {root}/.git/worktrees/shop-wt\n")
    assert place_of(str(tmp_path / "moved")).locate(FILE) == FILE
    (tmp_path / "shop" / ".git" / "worktrees" / "broken").mkdir(parents=True)
    (tmp_path / "shop" / ".git" / "worktrees" / "broken" / "gitdir").write_bytes(b"\0\xff")
    assert place_of(root).locate(f"{root}/{FILE}") == FILE


def test_a_path_through_a_link_is_one_below_the_root_that_it_leads_to(tmp_path: Path) -> None:
    root = repository(tmp_path / "real" / "shop")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "real" / "shop" / "current").symlink_to("src")
    linked = f"{tmp_path}/link/shop"
    for place in (place_of(linked), place_of(root), place_of(f"{linked}/src")):
        assert place.locate(f"{linked}/{FILE}") == FILE
        assert place.locate(f"{linked}/current/pay.py") == "current/pay.py", "a link of the project is called as the project calls it"
    assert place_of(linked).locate(f"{tmp_path}/link/other.py") == f"{tmp_path}/link/other.py"


@pytest.mark.parametrize("path", ["/else/where.py", "~/notes.md", "C:/x.py", "/a\0b", "/a\ud800b"])
def test_what_lies_outside_is_kept_as_it_is(path: str) -> None:
    assert Place(root="/w/shop", cwd="/w/shop").locate(path) == path
