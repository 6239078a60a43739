"""Who may come in by the HTTP door: a private file of hashed tokens that `recollect token` writes and the guard asks.

A token is bound to one workspace and one role. Its secret is shown once and never stored; a change to the file holds from
the next request on, in every process that reads it.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import os
import secrets
import sys
import time
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
from msgspec import Meta

from recollect.checks import checked_name
from recollect.config import config_path
from recollect.errors import ConfigError, InputError, StoreBusyError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable

if sys.platform == "win32":
    import msvcrt

    def _take(lock: int) -> None:
        msvcrt.locking(lock, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _take(lock: int) -> None:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


Role = Literal["read", "write", "admin"]
ROLES: tuple[Role, ...] = ("read", "write", "admin")  # each may do what those before it may
SECRET_PREFIX = "rcl_"  # noqa: S105  what every token begins with, so that scanners for secrets know one

TOKENS_MAX = 1_000
TOKEN_DAYS_MAX = 3_650
LABEL_CHARS_MAX = 100
FIRST_KEY_SECONDS_MAX = 15 * 60
_SECRET_CHARS_MAX = 200
_SECRET_BYTES = 32
_ID_BYTES = 4
_FILE_BYTES_MAX = 1_000_000
_LOCK_ATTEMPTS_MAX = 500
_LOCK_WAIT_SECONDS = 0.02
_OTHERS = 0o077

_Moment = Annotated[datetime, Meta(tz=True)]
_Identity = tuple[int, int, int, int, int]


class TokenRecord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is known of a token; `id` is what is shown and logged."""

    id: Annotated[str, Meta(min_length=1, max_length=40)]
    sha256: str
    workspace: Annotated[str, Meta(min_length=1)]
    role: Role
    created_at: _Moment
    label: str | None = None
    expires_at: _Moment | None = None
    revoked: bool = False

    def may(self, needed: Role) -> bool:
        """Tell whether its role is enough."""
        return ROLES.index(self.role) >= ROLES.index(needed)

    def holds(self, now: datetime) -> bool:
        """Tell whether it is neither revoked nor expired."""
        return not self.revoked and (self.expires_at is None or now < self.expires_at)


class _Kept(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    tokens: tuple[TokenRecord, ...]


def default_token_path() -> Path:
    """Return where the user's tokens are: beside their configuration."""
    return config_path().with_name("tokens.json")


def token_file(named: str | None) -> TokenFile:
    """Return the file of tokens that the settings name, or the one beside the configuration."""
    return TokenFile(Path(named).expanduser() if named else default_token_path())


class TokenFile:
    """The tokens of one file, which need not exist yet; several processes may read and write it at once."""

    def __init__(self, path: Path, random: Callable[[int], bytes] = secrets.token_bytes) -> None:
        self.path = path
        self._random = random
        self._cache: tuple[_Identity, tuple[TokenRecord, ...]] | None = None

    def create(self, workspace: str, role: Role, label: str | None, now: datetime, days: int | None = None) -> tuple[TokenRecord, str]:
        """Add a token and return it with its secret, which nobody can ask for again; without days it does not expire."""
        if role not in ROLES:
            msg = f"a role is one of {', '.join(ROLES)}, not {str(role)[:60]!r}"
            raise InputError(msg)
        if days is not None and not 1 <= days <= TOKEN_DAYS_MAX:
            msg = f"a token lasts from 1 to {TOKEN_DAYS_MAX:,} days, not {days}"
            raise InputError(msg)
        if label is not None and len(label) > LABEL_CHARS_MAX:
            msg = f"a label has at most {LABEL_CHARS_MAX} characters, not {len(label):,}"
            raise InputError(msg)
        secret = SECRET_PREFIX + _url_safe(self._random(_SECRET_BYTES))
        with self._changing() as records:
            if len(records) >= TOKENS_MAX:
                msg = f"{self.path} holds {TOKENS_MAX:,} tokens, which is the most: delete the file to begin anew"
                raise InputError(msg)
            record = TokenRecord(
                id=self._fresh_id({known.id for known in records}),
                sha256=_hashed(secret),
                workspace=checked_name("workspace", workspace),
                role=role,
                created_at=now,
                label=None if label is None else label.encode(errors="replace").decode(),
                expires_at=None if days is None else now + timedelta(days=days),
            )
            self._write((*records, record))
        return record, secret

    def list(self) -> list[TokenRecord]:
        """Return all tokens, the oldest first, those that no longer hold included."""
        return [*self._read()]

    def revoke(self, token_id: str) -> bool:
        """End a token for good; return False when there is none of this id."""
        with self._changing() as records:
            if all(record.id != token_id for record in records):
                return False
            self._write(msgspec.structs.replace(record, revoked=True) if record.id == token_id else record for record in records)
        return True

    def check(self, secret: str, now: datetime) -> TokenRecord | None:
        """Return the token of a secret if it holds now, else None; the time taken tells nothing of the stored ones."""
        if len(secret) > _SECRET_CHARS_MAX:
            return None
        given = _hashed(secret)
        found = None
        for record in self._read():
            if hmac.compare_digest(record.sha256.encode(), given.encode()):
                found = record
        return found if found is not None and found.holds(now) else None

    def _fresh_id(self, taken: set[str]) -> str:
        while (fresh := self._random(_ID_BYTES).hex()) in taken:
            pass
        return fresh

    def _read(self) -> tuple[TokenRecord, ...]:
        try:
            if self._cache is not None and self._cache[0] == _identity(self.path.stat()):
                return self._cache[1]
            with self.path.open("rb") as file:
                status = os.fstat(file.fileno())  # of the file that is read, not of one that replaces it meanwhile
                raw = file.read(_FILE_BYTES_MAX + 1)
        except FileNotFoundError:
            return ()
        except OSError as error:
            msg = f"cannot read the tokens {self.path}: {error.strerror or error}"
            raise ConfigError(msg) from error
        if os.name == "posix" and status.st_mode & _OTHERS:
            msg = f"others may read or write the tokens {self.path}: run chmod 600 on it"
            raise ConfigError(msg)
        records = self._decoded(raw)
        self._cache = (_identity(status), records)
        return records

    def _decoded(self, raw: bytes) -> tuple[TokenRecord, ...]:
        trouble = "it is larger than any such file"
        if len(raw) <= _FILE_BYTES_MAX:
            try:
                return msgspec.json.decode(raw, type=_Kept).tokens
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                trouble = str(error)
        msg = f"the tokens {self.path} are damaged ({trouble}): restore the file, or delete it and create the tokens anew"
        raise ConfigError(msg)

    @contextlib.contextmanager
    def _changing(self) -> Generator[tuple[TokenRecord, ...]]:
        """Give the tokens to one writer at a time, whichever process it is in."""
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = os.open(self.path.with_name(self.path.name + ".lock"), os.O_CREAT | os.O_RDWR, 0o600)
        except OSError as error:
            msg = f"cannot write beside the tokens {self.path}: {error.strerror or error}"
            raise ConfigError(msg) from error
        try:
            self._wait_for(lock)
            yield self._read()
        finally:
            os.close(lock)  # lets go of the lock, as the death of this process would

    def _wait_for(self, lock: int) -> None:
        for _ in range(_LOCK_ATTEMPTS_MAX):
            with contextlib.suppress(OSError):
                _take(lock)
                return
            time.sleep(_LOCK_WAIT_SECONDS)
        msg = f"another process has been writing the tokens {self.path} for too long: try again"
        raise StoreBusyError(msg)

    def _write(self, records: Iterable[TokenRecord]) -> None:
        """Replace the file as a whole; who reads meanwhile sees the old tokens or the new ones, never a part."""
        fresh = self.path.with_name(self.path.name + ".new")
        raw = msgspec.json.format(msgspec.json.encode(_Kept(tokens=tuple(records))))
        try:
            fresh.unlink(missing_ok=True)  # what a writer left that died
            with os.fdopen(os.open(fresh, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
                file.write(raw)
                file.flush()
                os.fsync(file.fileno())
            fresh.replace(self.path)
        except OSError as error:
            msg = f"cannot write the tokens {self.path}: {error.strerror or error}"
            raise ConfigError(msg) from error


class FirstKey:
    """A key in the address that is printed at the first start: it lets one person in, once, as admin of one workspace."""

    def __init__(self, workspace: str, key: str, expires_at: datetime) -> None:
        self.workspace = workspace
        self.key = key
        self._expires_at = expires_at
        self._is_taken = False

    @classmethod
    def create(cls, now: datetime, workspace: str, random: Callable[[int], bytes] = secrets.token_bytes) -> FirstKey:
        """Make a key that can be taken within the next 15 minutes."""
        return cls(workspace, _url_safe(random(_SECRET_BYTES)), now + timedelta(seconds=FIRST_KEY_SECONDS_MAX))

    def take(self, key: str, now: datetime) -> bool:
        """Tell whether this is the key, in time and for the first time; it never is again."""
        is_right = hmac.compare_digest(key.encode(errors="replace"), self.key.encode())
        if not is_right or self._is_taken or now >= self._expires_at:
            return False
        self._is_taken = True
        return True


def _identity(status: os.stat_result) -> _Identity:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _hashed(secret: str) -> str:
    # a secret of 256 random bits cannot be guessed from its hash, so a fast one serves and every request may pay for it
    return hashlib.sha256(secret.encode(errors="replace")).hexdigest()


def _url_safe(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
