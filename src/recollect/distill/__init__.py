"""Turns → what they are found and remembered by."""
