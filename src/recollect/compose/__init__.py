"""What matters now, within a budget."""
