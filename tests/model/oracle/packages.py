# tests/model/oracle/packages.py - numpy, gguf and libgguf, where scripts/setup puts them
"""Imported before them. A script that cannot import them ends with 77 and says why."""
import os
import sys

sys.dont_write_bytecode = True  # the source tree stays as it is
SOURCE = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))
sys.path.insert(0, os.path.join(SOURCE, "build", "tools", "gguf"))


def skip(reason):
    print(f"SKIP: {reason}")
    sys.exit(77)


try:
    import gguf
    import libgguf
    import numpy
except ImportError as error:
    skip(f"scripts/setup installs PyPI's gguf and libgguf: {error}")
