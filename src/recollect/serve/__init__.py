"""The doors: thin, and all giving the library's own answers."""
