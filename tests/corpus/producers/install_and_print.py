#!/usr/bin/env python3
# tests/corpus/producers/install_and_print.py - installs producers from PyPI, prints their texts
"""usage: install_and_print.py OUT [PRODUCER...]

Makes a virtual environment beside OUT, installs what each producer needs, and prints with print.py.
`SKIP PRODUCER: REASON` for what cannot be installed or printed here, `SKIP all` where that is all.
"""
import os
import subprocess
import sys
import tempfile
import venv

PACKAGES = {"triton": ["triton"], "numba": ["numba", "numba-cuda"], "warp": ["warp-lang"],
            "tinygrad": ["tinygrad"], "halide": ["halide"]}
HERE = os.path.dirname(os.path.abspath(__file__))


def last_line(text):
    lines = [line for line in text.strip().split("\n") if line]
    return lines[-1][:300] if lines else "no message"


def run(*command, **environment):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=900, env={**os.environ, **environment})


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    out, wanted = os.path.abspath(sys.argv[1]), sys.argv[2:] or list(PACKAGES)
    printed = 0
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = os.path.join(folder, "bin", "python")
        for producer in wanted:
            made = run(python, "-m", "pip", "install", "-q", "numpy", *PACKAGES[producer])
            if made.returncode != 0:
                print(f"SKIP {producer}: not to be had from PyPI: {last_line(made.stdout)}")
                continue
            # Caches and sources of the producers go where everything else goes.
            made = run(python, os.path.join(HERE, "print.py"), out, producer, HOME=folder,
                       PYTHONDONTWRITEBYTECODE="1")
            lines = made.stdout.strip().split("\n")
            told = [line for line in lines if line.startswith(("SKIP ", f"{producer} "))]
            print("\n".join(told) or f"SKIP {producer}: {last_line(made.stdout)}")
            printed += any(line.startswith(f"{producer} ") for line in told)
    if printed == 0:
        print("SKIP all")


if __name__ == "__main__":
    main()
