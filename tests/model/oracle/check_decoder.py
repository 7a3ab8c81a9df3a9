#!/usr/bin/env python3
# tests/model/oracle/check_decoder.py - logits of the decoder against a pass in fp64
"""usage: check_decoder.py [--ptxgen PROGRAM] --paths PROGRAM --work FOLDER [--every | --every-if-full]
                        [--short] [NAME...]

Runs synthetic models on the emulated device with default checks and compares the logits of 40
positions, 18 with --short, with forward.py's:
  f32     the worst of the paths of decoder_paths with a KV cache of f32: the prompt in one call, in
          pieces, token by token with and without a graph, restored, truncated, among sequences
  cache   the worst of two paths with the configuration's other type of cache
  program `ptxgen generate --logits`
Two pairs of paths launch the same kernels on the same data and must give the same bits.

NAME: one of those that synthetic.py lists. Default: a few, on half of the paths (--short); all with
--every, or with --every-if-full where PTXGEN_TEST_FULL is 1.
Exit status 1 if an NMSE is above its bound, bits differ, the device found something, or nothing was
compared; 77 if numpy or gguf are missing.
"""
import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # threads cost more than toys gain
import packages  # before gguf and numpy
import numpy as np
import synthetic
from forward import Forward, Weights, nmse

BOUNDS = {"f32": 1e-9, "f16": 1e-5, "bf16": 1e-4, "q8_0": 1e-3}
PATHS = ("at-once", "pieces", "tokens", "launches", "restored", "truncated", "sequences")
CACHE_PATHS = ("at-once", "restored")
SHORT_PATHS = ("pieces", "tokens", "restored")
SHORT_CACHE_PATHS = ("restored",)
SHORT_POSITIONS = 18  # more than two pieces of a prompt
SAME_BITS = (("tokens", "launches"), ("restored", "truncated"))
MINIMUM = 60  # configurations of a full run


class Failure(Exception):
    """A program that ended otherwise than it should."""


def run(command, where):
    """What it prints."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=600,
                          env={**os.environ, "PTXGEN_CACHE": "memory"})
    said = "\n".join(done.stderr.strip().splitlines()[:8])
    if done.returncode != 0:
        raise Failure(f"{where} ended with {done.returncode}: {said or done.stdout.strip()}")
    return done.stdout


def same_shape(logits, wanted, where):
    if logits.shape != wanted.shape:
        raise Failure(f"{where}: logits of shape {logits.shape} for {wanted.shape}")
    return logits


class Check:
    """One configuration."""

    def __init__(self, options, c, folder):
        self.options, self.c, self.folder = options, c, folder
        self.path = os.path.join(folder, f"{c.name}.gguf")
        synthetic.write(c, self.path)
        self.tokens = synthetic.prompt(c, SHORT_POSITIONS if options.short else synthetic.POSITIONS)
        self.wanted = Forward(Weights(self.path)).logits(self.tokens)
        self.text = ",".join(map(str, self.tokens))
        self.failures, self.compared = [], 0

    def compare(self, logits, cache, where):
        error = nmse(same_shape(logits, self.wanted, where), self.wanted)
        self.compared += 1
        if not error <= BOUNDS[cache]:
            self.failures.append(f"{where}: NMSE {error:.2e}, bound {BOUNDS[cache]:.0e};"
                                 f" {self.first_wrong(logits, BOUNDS[cache])}")
        return error

    def first_wrong(self, logits, bound):
        """The first position whose own NMSE is above the bound."""
        for position, (got, wanted) in enumerate(zip(logits, self.wanted)):
            error = nmse(got, wanted)
            if not error <= bound:
                return f"first at position {position}, {error:.2e}"
        return "at no position alone"

    def read_path(self, path):
        logits = np.fromfile(os.path.join(self.folder, f"{path}.f32"), np.float32)
        return logits.reshape(-1, self.c.vocabulary)

    def paths(self, cache, paths):
        """The worst NMSE."""
        where = f"decoder_paths with a cache of {cache}"
        run([self.options.paths, self.path, self.text, cache, self.folder, *paths], where)
        logits = {path: self.read_path(path) for path in paths}
        for one, other in SAME_BITS:
            if one in logits and other in logits:
                different = int(np.sum(logits[one].view(np.uint32) !=
                                       logits[other].view(np.uint32)))
                if different:
                    self.failures.append(f"{where}: {different} logits of '{one}' and '{other}'"
                                         " differ")
        return max((self.compare(logits[path], cache, f"{where}, path '{path}'")
                    for path in paths), key=lambda error: (error != error, error))

    def program(self):
        output = os.path.join(self.folder, "logits.npy")
        said = json.loads(run([self.options.ptxgen, "generate", self.path, "--device", "emulator",
                               "--tokens", self.text, "-n", "0", "--kv-type", "f32", "--logits",
                               output, "--json"], "ptxgen generate"))
        if any(said["findings"].values()):
            raise Failure(f"ptxgen generate: findings: {said['findings']}")
        logits = np.load(output)
        if logits.dtype != np.float32:
            raise Failure(f"ptxgen generate: logits of type {logits.dtype}")
        return self.compare(logits, "f32", "ptxgen generate")

    def all(self):
        short = self.options.short
        errors = [self.paths("f32", SHORT_PATHS if short else PATHS),
                  self.paths(self.c.cache, SHORT_CACHE_PATHS if short else CACHE_PATHS)]
        if self.options.ptxgen:
            errors.append(self.program())
        return [f"{error:.1e}" for error in errors] + ["-"] * (3 - len(errors))


def cpu_seconds():
    return sum(getattr(resource.getrusage(who), name) for name in ("ru_utime", "ru_stime")
               for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def check(options, c):
    """Failures and the number of comparisons; prints a line."""
    begin = cpu_seconds()
    with tempfile.TemporaryDirectory(dir=options.work) as folder:
        one = Check(options, c, folder)
        try:
            f32, cache, program = one.all()
        except (Failure, subprocess.TimeoutExpired, OSError, ValueError) as failure:
            one.failures.append(str(failure))
            f32 = cache = program = "-"
    verdict = "FAILED" if one.failures else "ok"
    print(f"{c.name:<10} {f32:>8} {c.cache:>5} {cache:>8} {program:>8} {cpu_seconds() - begin:6.1f} s"
          f"  {verdict:<7}{c.describe()}", flush=True)
    for failure in one.failures:
        print(f"  {c.name}: {failure}", flush=True)
    return one.failures, one.compared


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ptxgen")
    parser.add_argument("--paths", required=True)
    parser.add_argument("--work", required=True)
    parser.add_argument("--every", action="store_true")
    parser.add_argument("--every-if-full", action="store_true")
    parser.add_argument("--short", action="store_true")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    every = options.every or (options.every_if_full and
                              os.environ.get("PTXGEN_TEST_FULL") == "1")
    options.short = options.short or not (every or options.names)
    names = options.names or ([c.name for c in synthetic.CONFIGURATIONS] if every else
                              synthetic.EVERYDAY)
    os.makedirs(options.work, exist_ok=True)
    print(f"bounds of the NMSE: {', '.join(f'{name} {bound:.0e}' for name, bound in BOUNDS.items())}")
    print(f"{'model':<10} {'f32':>8} {'cache':>5} {'NMSE':>8} {'program':>8} {'CPU':>8}", flush=True)
    failed, compared = 0, 0
    for name in names:
        failures, comparisons = check(options, synthetic.find(name))
        failed += bool(failures)
        compared += comparisons
    print(f"{len(names)} models, {failed} failed, {compared} comparisons")
    if every and not options.names and len(names) < MINIMUM:
        print(f"a full run has at least {MINIMUM} configurations")
        return 1
    return 1 if failed or not compared else 0


if __name__ == "__main__":
    sys.exit(main())
