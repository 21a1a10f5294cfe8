"""Finding videos, sampling their frames once, and the cache of clips."""
