"""How many examples each property is tried with: `FUZZ_EXAMPLES`, a few hundred by default."""

import os

from hypothesis import HealthCheck, settings

fuzz = settings(
    max_examples=int(os.environ.get("FUZZ_EXAMPLES", "200")),
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
