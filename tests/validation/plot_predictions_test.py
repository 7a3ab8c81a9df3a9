# tests/validation/plot_predictions_test.py - timings are drawn from what the program wrote
"""usage: plot_predictions_test.py VALIDATE_PREDICTIONS PLOT_PREDICTIONS"""
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

program, plot = sys.argv[1:]
if shutil.which("gnuplot") is None:
    print("SKIP: there is no gnuplot")
    sys.exit(77)

failures = 0


def check(condition, what):
    global failures
    if not condition:
        failures += 1
        print("FAILED:", what)


def run(*arguments, cwd):
    return subprocess.run(arguments, cwd=cwd, capture_output=True, text=True, check=False)


with tempfile.TemporaryDirectory() as folder:
    compared = run(program, "--csv", "all.csv", cwd=folder)
    check(compared.returncode == 0, compared.stderr)
    check("regime" in compared.stdout and "gh200" in compared.stdout, compared.stdout)
    drawn = run(plot, "all.csv", cwd=folder)
    check(drawn.returncode == 0 and drawn.stdout == "predictions.svg\n", drawn.stderr)
    text = (Path(folder) / "predictions.svg").read_text(encoding="utf-8")
    for piece in ("reads", "repeated", "gemv", "gh200", "predicted, us"):
        check(piece in text, f"the drawing has no '{piece}'")
    (Path(folder) / "empty.csv").write_text("regime,gpu,series,point,measured_us\n")
    none = run(plot, "empty.csv", cwd=folder)
    check("empty.csv: there is no timing in it" in none.stderr, "nothing was drawn as something")
    wrong = run(program, "--data", "nothing", cwd=folder)
    check(wrong.returncode == 2 and "name a checkout of" in wrong.stderr, wrong.stderr)
    (Path(folder) / "page.md").write_text("# Page\n")
    page = run(program, "--page", "page.md", cwd=folder)
    check(page.returncode == 2 and "from here to the end. -->' is missing" in page.stderr,
          page.stderr)

print("all as expected" if failures == 0 else f"{failures} failures")
sys.exit(1 if failures else 0)
