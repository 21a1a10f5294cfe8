"""SCVBench: the order of events in short films, asked with and without a dialogue that leads up to it."""
