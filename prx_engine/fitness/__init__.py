"""Fitness of groups of sessions, from integer moments."""
