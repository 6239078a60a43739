"""The HTTP door: a guard before everything, the routes behind it."""
