"""Adapters: other people's environments as tasks."""
