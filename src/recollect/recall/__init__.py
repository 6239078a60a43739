"""A query → candidates from the store → scores (pure) → hits."""
