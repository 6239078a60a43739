"""`python -m recollect` is the command line."""

from recollect.serve.cli import entry

entry()
