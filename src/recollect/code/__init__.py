"""A folder of source files → the symbols they define; nothing here knows of a store."""
