"""Models of providers: which one the user configured, what it spends, and what it writes; loaded only where one is configured."""
