"""Screens: they turn a snapshot into lines and keys into requests."""
