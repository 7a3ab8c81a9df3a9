# tests/corpus/producers/print.py - prints the PTX of all programs of some producers
"""usage: print.py OUT [PRODUCER...]

Writes OUT/PRODUCER/*.ptx and OUT/PRODUCER/programs.json for each producer that this Python has.
The last line is the number of producers that were asked for and could not be used.
"""
import importlib
import sys
import traceback

import programs

PRODUCERS = ("triton", "numba", "warp", "tinygrad", "halide")


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    out, wanted = sys.argv[1], sys.argv[2:] or PRODUCERS
    missing = 0
    for producer in wanted:
        try:
            module = importlib.import_module(f"{producer}_kernels")
            programs.write(out, producer, module.VERSION, list(module.programs()))
        except Exception as error:  # whatever keeps a producer from printing is told and counted
            traceback.print_exc(limit=4)
            print(f"SKIP {producer}: {type(error).__name__}: {str(error)[:200]}")
            missing += 1
    print(missing)


if __name__ == "__main__":
    main()
