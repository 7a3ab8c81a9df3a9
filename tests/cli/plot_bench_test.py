# tests/cli/plot_bench_test.py - curves are drawn from what the program wrote
"""usage: plot_bench_test.py PTXGEN PLOT_BENCH"""
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
    for call in (["--op", "copy", "--sweep", "64..512", "--csv", "copy.csv"],
                 ["--op", "fma_rpt", "--n", "64", "--fma-k", "1..8", "--csv", "fma.csv"]):
        done = run(program, "bench", "--device", "emulator", *call, cwd=folder)
        check(done.returncode == 0, done.stderr)
    drawn = run(plot, "copy.csv", "fma.csv", "-o", "curves.svg", cwd=folder)
    check(drawn.returncode == 0 and drawn.stdout == "curves.svg\n", drawn.stderr)
    check("they say nothing about a GPU" in drawn.stderr, "the emulator's rates are not named")
    text = (Path(folder) / "curves.svg").read_text(encoding="utf-8")
    for piece in ("copy fp32", "fma_rpt 64", "GB/s", "GFLOP/s"):
        check(piece in text, f"the drawing has no '{piece}'")
    picture = run(plot, "copy.csv", "-o", "curves.png", cwd=folder)
    check(picture.returncode == 0, picture.stderr)
    check((Path(folder) / "curves.png").read_bytes()[:4] == b"\x89PNG", "no PNG was written")

    # One size is no curve, and a wrong result is not drawn.
    run(program, "bench", "--device", "emulator", "--n", "64", "--csv", "one.csv", cwd=folder)
    none = run(plot, "one.csv", cwd=folder)
    check(none.returncode != 0 and "no curve" in none.stderr, "one point was drawn as a curve")
    wrong = (Path(folder) / "copy.csv").read_text(encoding="utf-8").replace("true", "false")
    (Path(folder) / "wrong.csv").write_text(wrong, encoding="utf-8")
    refused = run(plot, "wrong.csv", cwd=folder)
    check(refused.returncode != 0 and "wrong.csv:2: the result was wrong" in refused.stderr,
          "wrong results were drawn")
    odd = run(plot, "copy.csv", "-o", "curves.pdf", cwd=folder)
    check("must end in .svg or .png" in odd.stderr, "a name without a known ending was taken")

print("all as expected" if failures == 0 else f"{failures} failures")
sys.exit(1 if failures else 0)
