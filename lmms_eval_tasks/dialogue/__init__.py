"""Asking a model several things in a row: conversation programs, and running them in lock step."""
