"""MVPBench: perception over several videos at once, interleaved in one prompt."""
