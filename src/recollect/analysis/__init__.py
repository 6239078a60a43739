"""Conversations → insights: what is asked for, what is shown, what is answered and checked, many at once."""
