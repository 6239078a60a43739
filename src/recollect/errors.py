"""Every error Recollect raises on purpose, with its exit code and HTTP status; a leaf of the import graph.

RecollectError
├── InputError              what came in cannot be read, or an argument makes no sense
│   ├── ConfigError         the user's configuration is wrong
│   └── TooLargeError       more than a named limit allows
├── ConflictError           the same id was recorded before with other content
├── NotFoundError           no such conversation, turn or project in this workspace
├── NotAllowedError         the caller may not do this
├── ModelError              a model or embedding endpoint could not do what it was asked
│   └── SpendingError       the daily cap of a use of models is reached
│       └── BudgetError     the tokens that one run may spend are spent
└── StoreError              the store cannot be used
    ├── StoreBusyError      another process held the store for too long
    ├── StoreUnavailableError   the file or server cannot be reached
    ├── NewerStoreError     the store was made by a newer Recollect
    └── DamagedStoreError   the store's bytes are not what was written

A message is one sentence that names the offending value and the remedy.
"""

from __future__ import annotations


class RecollectError(Exception):
    """The root; catch it to catch everything Recollect raises on purpose."""

    exit_code = 2
    http_status = 500


class InputError(RecollectError):
    """What came in cannot be read, or an argument makes no sense."""

    http_status = 422


class ConfigError(InputError):
    """The user's configuration names something unknown or impossible."""


class TooLargeError(InputError):
    """More came in than a named limit allows."""

    http_status = 413


class ConflictError(RecollectError):
    """The same id was recorded before with other content, and replacing was not asked for."""

    http_status = 409


class NotFoundError(RecollectError):
    """There is no such thing in this workspace."""

    exit_code = 1
    http_status = 404


class NotAllowedError(RecollectError):
    """The caller may not do this."""

    exit_code = 4
    http_status = 403


class ModelError(RecollectError):
    """A model or embedding endpoint could not do what it was asked; what does without it goes on."""

    http_status = 502


class SpendingError(ModelError):
    """What was asked would spend more tokens than the user allows in a day; nothing was sent."""

    exit_code = 4
    http_status = 429


class BudgetError(SpendingError):
    """What was asked would spend more tokens than one run was given; nothing was sent."""


class StoreError(RecollectError):
    """The store cannot be used."""

    exit_code = 3
    http_status = 503


class StoreBusyError(StoreError):
    """Another process held the store for longer than we wait."""


class StoreUnavailableError(StoreError):
    """The file or the server cannot be reached or is not ours."""


class NewerStoreError(StoreError):
    """The store was made by a newer Recollect than this one."""


class DamagedStoreError(StoreError):
    """The store's bytes are not what was written."""
