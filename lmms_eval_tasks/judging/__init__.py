"""Asking a judge model: client, budget, records, verdict parsing."""
