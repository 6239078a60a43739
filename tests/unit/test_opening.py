from __future__ import annotations

import pytest

from recollect.errors import InputError
from recollect.opening import settings_of
from recollect.settings import Settings


@pytest.mark.parametrize("empty", ["", " ", "\t\n"])
def test_an_empty_store_or_workspace_never_stands_for_the_users_own(empty: str) -> None:
    with pytest.raises(InputError, match="store is a file or the address of a server"):
        settings_of(empty, None, None)
    with pytest.raises(InputError, match="workspace is a name"):
        settings_of(None, empty, None)


def test_what_is_not_given_is_the_users_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECOLLECT_STORE", "own.db")
    monkeypatch.setenv("RECOLLECT_WORKSPACE", "")
    assert settings_of(None, None, Settings()).store == "own.db"
    assert settings_of(None, "team", None).workspace == "team"
    assert settings_of(None, None, None).workspace == "default"
