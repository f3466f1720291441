"""Telemetry: what agents write becomes updates of sessions; one module a format."""
