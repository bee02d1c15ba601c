"""How fast Magy is, as ratios to the least that the same job costs on the same machine in the same
run: `python -m bench` (`make bench`). What each row means: docs/benchmarks.md."""
