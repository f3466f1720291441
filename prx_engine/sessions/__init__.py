"""Sessions: which variant each one runs, and what is recorded about it."""
