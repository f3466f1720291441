"""Experiments: their states, their schedule, and how they are analysed and decided."""
