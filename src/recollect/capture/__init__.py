"""What comes in → turns: shapes read, secrets removed, files and changes worked out."""
