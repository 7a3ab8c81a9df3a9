#!/usr/bin/env python3
# tests/model/oracle/real_prefill.py - prompts of real models, at once and by token
"""usage: real_prefill.py --ptxgen PROGRAM --paths PROGRAM [--models FOLDER] [--only MODEL]
                       [--tokens N] [--types f32,f16,bf16] [--no-install]

The models of real_models.py. A prompt of N tokens (512: the beginning of this repository's README.md)
is computed token by token, by decoder_paths, and at once, by `ptxgen generate` with each type of the
products (--prefill-type), whose keys and values have the same type. Wanted are
  - the logits of all positions of the tokens one by one: NMSE 1e-9 for f32, 1e-5 f16, 1e-4 bf16, where
    these have keys and values of the same type
  - a twentieth of their launches
  - no finding of the emulated device
Printed beside them: seconds, launches and time by kernel, and the rate of the products.
Exit status: 0, 1 if something is wrong, 77 if there is no model. What is left out is printed in lines
that begin with SKIPPED.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
import packages  # before gguf and numpy
import numpy as np
from forward import nmse
from real_models import Failure, MODELS, Missing, Report, model_file

BOUNDS = {"f32": 1e-9, "f16": 1e-5, "bf16": 1e-4}
FEWER_LAUNCHES = 20
ENVIRONMENT = {**os.environ, "PTXGEN_CACHE": "memory"}


def call(command):
    """What it prints, and its seconds."""
    begin = time.time()
    done = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT)
    if done.returncode != 0:
        said = "\n".join(done.stderr.strip().splitlines()[:8])
        raise Failure(f"{' '.join(command[:3])} ended with {done.returncode}: {said}")
    return done.stdout, time.time() - begin


def prompt_of(options, path):
    """Tokens of this repository's README.md."""
    readme = os.path.join(packages.SOURCE, "README.md")
    said, _ = call([options.ptxgen, "tokenize", path, "-f", readme, "--json"])
    ids = json.loads(said)["texts"][0]["ids"]
    if len(ids) < options.tokens:
        raise Failure(f"{readme} has {len(ids)} tokens, wanted {options.tokens}")
    return ids[:options.tokens]


class Prompt:
    """A model's prompt, computed in several ways."""

    def __init__(self, report, options, name, path, folder):
        self.report, self.options, self.name, self.path = report, options, name, path
        self.folder = folder
        self.text = ",".join(map(str, prompt_of(options, path)))

    def generate(self, *arguments):
        said, _ = call([self.options.ptxgen, "generate", self.path, "--device", "emulator",
                        "--greedy", "--json", "--stats", *arguments])
        document = json.loads(said)
        if any(document["findings"].values()):
            raise Failure(f"ptxgen generate {self.path}: {document['findings']}")
        return document

    def launches_of_token(self):
        said = self.generate("--tokens", self.text.split(",")[0], "-n", "2", "--ignore-eos")
        return sum(row["launches_per_token"] for row in said["kernels"])

    def by_token(self, cache):
        _, seconds = call([self.options.paths, self.path, self.text, cache, self.folder, "tokens"])
        logits = np.fromfile(os.path.join(self.folder, "tokens.f32"), np.float32)
        print(f"{self.name}: token by token, keys and values {cache}: {seconds:.1f} s", flush=True)
        return logits.reshape(self.options.tokens, -1)

    def at_once(self, of_type):
        output = os.path.join(self.folder, "logits.npy")
        said = self.generate("--tokens", self.text, "-n", "0", "--logits", output, "--prefill-type",
                             of_type, "--kv-type", of_type, "--prefill-rows",
                             str(self.options.tokens))
        kernels = ", ".join(f"{row['kernel']} {row['launches']} x, {row['seconds']:.1f} s"
                            for row in said["prefill_kernels"])
        print(f"{self.name}: at once, {of_type}: {said['prefill_seconds']:.1f} s,"
              f" products {said.get('prefill_gemm_gflops', 0):.2f} GFLOP/s; {kernels}", flush=True)
        return np.load(output), said["prefill_launches"]

    def check(self):
        count = self.options.tokens
        one_by_one = count * self.launches_of_token()
        for of_type in self.options.types:
            wanted = self.by_token(of_type)
            logits, launches = self.at_once(of_type)
            error = nmse(logits, wanted) if logits.shape == wanted.shape else float("nan")
            bound = BOUNDS[of_type]
            self.report.row(self.name, f"{count} tokens at once, {of_type}", f"{error:.2e}",
                            f"NMSE <= {bound:.0e}", error <= bound)
            # Rows of logits, which only this comparison asks for, are launches too.
            fewer = one_by_one / launches
            self.report.row(self.name, f"{count} tokens, {of_type}: {launches} launches",
                            f"{fewer:.0f} times fewer", f"{FEWER_LAUNCHES} times",
                            fewer >= FEWER_LAUNCHES)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ptxgen", required=True)
    parser.add_argument("--paths", required=True)
    parser.add_argument("--models", default=os.environ.get("PTXGEN_MODELS") or
                        os.path.join(packages.SOURCE, "build", "models"))
    parser.add_argument("--only", choices=MODELS)
    parser.add_argument("--tokens", type=int, default=512)
    parser.add_argument("--types", type=lambda text: text.split(","), default=list(BOUNDS))
    parser.add_argument("--no-install", dest="install", action="store_false")
    options = parser.parse_args()
    if not set(options.types) <= set(BOUNDS):
        parser.error(f"--types: expects some of {', '.join(BOUNDS)}")
    report = Report()
    os.makedirs(options.models, exist_ok=True)
    for name in [options.only] if options.only else MODELS:
        print(f"\n== {name}; terms of use of {MODELS[name][3]}", flush=True)
        try:
            path = model_file(options.models, name, options.install)
            with tempfile.TemporaryDirectory() as folder:
                Prompt(report, options, name, path, folder).check()
        except Missing as missing:
            report.skip(f"{name}: {missing}")
        except Failure as failure:
            report.row(name, "the program", "failed", str(failure), False)
    report.print()
    if report.failures:
        return 1
    return 0 if report.rows else 77


if __name__ == "__main__":
    sys.exit(main())
