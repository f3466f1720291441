"""Scoring: from the raw metrics of a session to its scores."""
