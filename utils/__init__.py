"""Stand-ins for what a laptop or CI lacks: sample data, a tiny model, a local model and judge server."""
