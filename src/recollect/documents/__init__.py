"""Conversations outside of a store: documents out and in, files beside it, whole stores copied."""
