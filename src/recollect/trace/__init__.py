"""Answers about what was recorded: is it what was said, is it whole."""
