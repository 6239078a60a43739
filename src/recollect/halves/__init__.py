"""What `Memory` does, half by half, on the core that makes its parts."""
