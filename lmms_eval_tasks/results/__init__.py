"""From answers to numbers: items, run records, protocol cards, offline scoring."""
