#!/usr/bin/env python3
# bench/check_json.py - a benchmark's JSON is JSON
"""check_json.py BENCHMARK FILTER: runs the rows that FILTER names, briefly, and reads the output."""
import json
import subprocess
import sys

program, rows = sys.argv[1:]
done = subprocess.run([program, "--benchmark_format=json", "--benchmark_min_time=0.001",
                       f"--benchmark_filter={rows}"],
                      capture_output=True, text=True, check=False)
if done.returncode != 0:
    sys.exit(f"{program}: exit status {done.returncode}\n{done.stderr}")
try:
    report = json.loads(done.stdout)
except ValueError as error:
    sys.exit(f"{program} --benchmark_format=json prints no JSON: {error}\n{done.stdout[:500]}")
timed = [row for row in report["benchmarks"] if row["cpu_time"] > 0]
if not timed:
    sys.exit(f"{program}: no row of '{rows}' has a time")
print(f"{len(timed)} rows")
