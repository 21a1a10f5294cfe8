"""What is made of finished runs: tables with intervals, plots, a page of all samples, agreement of judges."""
