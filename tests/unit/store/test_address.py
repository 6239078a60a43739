"""The address of a server: read in full, and never shown with a password."""

from __future__ import annotations

import pytest

from recollect.checks import masked
from recollect.errors import InputError
from recollect.store import open_store, waits_for_a_server
from recollect.store.neo4j.address import Address, address_of


def test_an_address_has_a_server_a_database_and_perhaps_a_user() -> None:
    assert address_of("neo4j://host:7687") == Address(server="neo4j://host:7687")
    assert address_of("neo4j+s://ann@host/memory") == Address(server="neo4j+s://host", database="memory", user="ann")
    assert address_of("bolt://[::1]:7688/").server == "bolt://[::1]:7688"
    assert address_of("neo4j://host/memory").url == "neo4j://host/memory"


@pytest.mark.parametrize(
    "url",
    [
        "neo4j://ann:hunter2@host", "neo4j://ann:hun/hunter2@host:7687", "neo4j://ann:#hunter2@host", "neo4j://ann:?hunter2@host",
        "Neo4j://ann:hunter2@host", "neo4js://ann:hunter2@host", "neo4j+x://ann:hunter2@host", "bolt+unix://ann:hunter2@host",
        "neo4j://[::1:hunter2@", "neo4j://host:99999", "neo4j://", "neo4j://host/a/b",
    ],
)  # fmt: skip
async def test_what_is_no_address_is_refused_and_no_password_is_repeated(url: str) -> None:
    with pytest.raises(InputError) as raised:
        await open_store(url)
    assert "hunter2" not in str(raised.value)


def test_what_is_shown_of_an_address_has_no_password() -> None:
    assert masked("neo4j://ann:hun@ter2@host:7687/db") == "neo4j://ann:…@host:7687/db"
    assert masked("neo4j://ann@host") == "neo4j://ann@host"
    assert masked("sqlite:///a/b@c.db") == "sqlite:///a/b@c.db"


def test_only_servers_are_waited_for() -> None:
    assert [waits_for_a_server(url) for url in ("memory.db", "sqlite:///x", "neo4j://h", "BOLT+S://h", "C:\\m.db")] == [
        False, False, True, True, False,
    ]  # fmt: skip
