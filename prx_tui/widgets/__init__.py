"""Widgets: they show lines and know nothing of experiments."""
