"""The calibration study: thousands of simulated experiments through the engine's own analysis.

``python -m tests.study`` runs it and prints its tables; docs/calibration.md has those of the last run.
"""
