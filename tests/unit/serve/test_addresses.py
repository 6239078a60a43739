"""Where a server is reached, and the names it answers to."""

from __future__ import annotations

import pytest

from recollect.serve.http.addresses import host_of, is_loopback, names_of


@pytest.mark.parametrize(
    ("listens", "asked", "alone", "names"),
    [
        ("127.0.0.1", "127.0.0.1", True, set[str]()),
        ("localhost", "localhost", True, set[str]()),
        ("::1", "[::1]", True, set[str]()),
        ("127.0.0.2", "127.0.0.2", True, {"127.0.0.2"}),
        ("0.0.0.0", "127.0.0.1", False, set[str]()),  # noqa: S104  asked about, not bound to
        ("::", "[::1]", False, set[str]()),
        ("192.0.2.7", "192.0.2.7", False, {"192.0.2.7"}),
        ("2001:DB8::7", "[2001:db8::7]", False, {"[2001:db8::7]"}),
        ("fe80::7%eth0", "[fe80::7]", False, {"[fe80::7]"}),
        ("Memory.lan", "memory.lan", False, {"memory.lan"}),
        ("bücher.lan", "bücher.lan", False, set[str]()),  # no Host header can say it so
    ],
)
def test_what_a_server_listens_on_says_how_it_is_asked(listens: str, asked: str, alone: bool, names: set[str]) -> None:
    assert (host_of(listens), is_loopback(listens)) == (asked, alone)
    assert names_of(listens, ()) == names
    assert names_of(listens, ("proxy.example:443",)) == {*names, "proxy.example:443"}
