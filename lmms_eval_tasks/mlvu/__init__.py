"""MLVU: multiple choice and judged generation on videos of three minutes to two hours."""
