"""Turns → the store: appended, recognised in a history, in pieces, or anew."""
