# tests/gemv_bench/plot_gemv_test.py - what gemv-bench measured is drawn
"""usage: plot_gemv_test.py GEMV_BENCH PLOT_GEMV"""
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
    done = run(program, "run", "--device", "emulator", "--shapes", "64x32,32x64", "--dtype",
               "f32", "--n", "1", "--with", "copy", "--no-ceilings", "--chained", "--csv", "gemv.csv",
               cwd=folder)
    check(done.returncode == 0, done.stderr)
    drawn = run(plot, "gemv.csv", "-o", "gemv.svg", cwd=folder)
    check(drawn.returncode == 0 and drawn.stdout == "gemv.svg\n", drawn.stderr)
    check("they say nothing about a GPU" in drawn.stderr, "the emulator's rates are not named")
    text = (Path(folder) / "gemv.svg").read_text(encoding="utf-8")
    for piece in ("f32, layout T", "f32, layout R", "planned", "copy", "GB/s"):
        check(piece in text, f"the drawing has no '{piece}'")
    picture = run(plot, "gemv.csv", "-o", "gemv.png", cwd=folder)
    check((Path(folder) / "gemv.png").read_bytes()[:4] == b"\x89PNG", picture.stderr)
    none = run(plot, "gemv.csv", "--metric", "isolated", cwd=folder)
    check(none.returncode != 0 and "nothing was measured isolated" in none.stderr, none.stderr)
    odd = run(plot, "gemv.csv", "-o", "gemv.pdf", cwd=folder)
    check("must end in .svg or .png" in odd.stderr, "a name without a known ending was taken")

print("all as expected" if failures == 0 else f"{failures} failures")
sys.exit(1 if failures else 0)
