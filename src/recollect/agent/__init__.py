"""What an agent works with: tools on the files of a project and on what is remembered of it."""
