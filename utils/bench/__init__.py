"""Speeds, measured side by side in one run: ``python -m utils.bench NAME [--json]``.

One module per bench; its ``run()`` prints what it measured and returns the figures.
"""
