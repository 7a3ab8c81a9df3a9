#!/usr/bin/env python3
# tests/gemv_bench/gpu_suite_test.py - scripts/gpu-suite, rehearsed on the emulator
"""gpu_suite_test.py SCRIPT PTXGEN GEMV_BENCH FUNCTIONAL WRITE_MODEL: a few steps of it, its report and its exit codes."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

script, ptxgen, gemv_bench, functional, write_model = (
    Path(argument).resolve() for argument in sys.argv[1:6])
full = os.environ.get("PTXGEN_TEST_FULL") == "1"


def check(condition, reason, said=""):
    if not condition:
        sys.exit(f"FAILED: {reason}\n{said}")


def program(folder, name, text):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)


def run(*arguments, **variables):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PTXGEN_")}
    environment.update(variables)
    done = subprocess.run([str(argument) for argument in arguments], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, universal_newlines=True, env=environment,
                          check=False)
    return done.returncode, done.stdout, (done.stdout.splitlines() or [""])[-1]


with tempfile.TemporaryDirectory() as name:
    work = Path(name)
    # The bundle as it is copied to another machine: one folder, the script beside the programs.
    bundle = work / "bin"
    bundle.mkdir()
    suite = bundle / "gpu-suite"
    shutil.copy(script, suite)
    for source in (ptxgen, gemv_bench, functional):
        (bundle / source.name).symlink_to(source)

    out = work / "out"
    few = "^(run/vadd|gemv/(auto|strided)/1x1|gemv/cublas.*|test/.*/F5: after a refused.*)$"
    status, said, last = run(suite, out, "--device", "emulator", "--only", few)
    check(status == 0, f"exit status {status}", said)
    check(last == "4 passed, 0 failed, 1 skipped", f"the last line is {last!r}", said)
    result = json.loads((out / "result.json").read_text(encoding="utf-8"))
    check(result["status"] == "passed" and result["passed"] == 4, "result.json counts", str(result))
    check(result["device"] == "emulator", "result.json names the device", str(result))
    steps = {step["name"]: step for step in result["steps"]}
    check(len(steps) == 5, "result.json has every step", str(result))
    check("no-cublas" in steps["gemv/cublas/4096x4096"]["reason"], "why cuBLAS was skipped", str(steps))
    summary = (out / "summary.md").read_text(encoding="utf-8")
    check("a rehearsal" in summary, "the summary says that no GPU was there", summary)
    check("| passed | run/vadd |" in summary and "| auto-1x1 |" in summary, "summary", summary)
    log = (out / "log.txt").read_text(encoding="utf-8")
    check("devices: emulator" in log, "the log has what the tests printed", log)
    check(json.loads((out / "gemv-auto-1x1.json").read_text(encoding="utf-8"))["ok"], "gemv's report")

    # GEMV against the clock: everything runs and is checked, and what needs a GPU says so.
    measured = work / "measured"
    status, said, last = run(suite, measured, "--device", "emulator", "--only",
                             "^(gemv-bench/|tune|decode/|counters/)")
    check(status == 0, f"measuring exits with {status}", said)
    check(last == "4 passed, 0 failed, 1 skipped", f"the last line is {last!r}", said)
    bench = json.loads((measured / "gemv-bench/rehearsal/gemv-bench.json").read_text(encoding="utf-8"))
    check(bench["right"] and len(bench["problems"]) == 4, "gemv-bench measured its problems")
    check(json.loads((measured / "tune.json").read_text(encoding="utf-8"))["tuned"] >= 2, "plans")
    check(len(list((measured / "tuned").glob("*.json"))) == 1, "a file of measured plans")
    check((measured / "decode-qwen2.5-0.5b-f16.json").exists(), "tokens per second")
    counted = json.loads((measured / "counters-R-f32-64x96-emulator.json").read_text(encoding="utf-8"))
    check(counted["counters"]["shared_load"]["bank_conflicts"] == 0, "the emulator's counters")
    summary = (measured / "summary.md").read_text(encoding="utf-8")
    check("## Claims, gemv-bench/rehearsal" in summary, "the summary has the claims", summary)
    check("| E1 | 4096 x 4096 f32 isolated: < 100 us | n/a |" in summary, "a verdict", summary)

    # A decoder's kernels: compared with their twins, timed beside copies, each launch checked.
    # The twins' launches are tested with the runtime and with `ptxgen parity`; a full run has them here,
    # too.
    twins = bundle
    if not full:
        twins = work / "twins"
        shutil.copytree(bundle, twins, symlinks=True)
        (twins / "ptxgen").unlink()
        program(twins, "ptxgen", f"""#!/bin/sh
[ "$1" != parity ] || set -- "$@" --code
exec '{ptxgen}' "$@"
""")
    decoder = work / "decoder"
    status, said, last = run(twins / "gpu-suite", decoder, "--device", "emulator", "--only", "^(parity$|kernel/)")
    check(status == 0, f"the decoder's kernels exit with {status}", said)
    check(last == "30 passed, 0 failed, 0 skipped", f"the last line is {last!r}", said)
    check("kernel pairs passed PTX parity" in (decoder / "log.txt").read_text(encoding="utf-8"),
          "the log has the pairs")
    measured_kernels = sorted(decoder.glob("kernel-*.json"))
    check(len(measured_kernels) == 29, "a file for each kernel", str(measured_kernels))
    for file in measured_kernels:
        kernel = json.loads(file.read_text(encoding="utf-8"))
        check(kernel["ok"] and kernel["cold"] and kernel["iters"] == 1, file.name, str(kernel))
        check(len(kernel["us"]) == len(kernel["copy_us"]) == kernel["rounds"] == 3,
              f"{file.name}: a copy beside each launch", str(kernel))
        check(kernel["lead_bytes"] > 0 and kernel["copy_gbs"] > 0, file.name, str(kernel))
        # One launch before the rounds.
        check(kernel["compared"] % (kernel["rounds"] + 1) == 0, f"{file.name}: every launch", str(kernel))
    summary = (decoder / "summary.md").read_text(encoding="utf-8")
    for name in ("gemv-q4_k", "gemv-group-qkv-q4_k-q8_1", "gemv-group-gate-up-q4_k", "attention-100-bf16",
                 "batched-gemv-q4_k-3", "rmsnorm-2", "rope-kv-write-2", "top-k", "gemm-96x80x64",
                 "gemm-mma-96x80x64", "flash-attention-70"):
        check(f"| {name} |" in summary, f"the table has {name}", summary)
    check("| llama.cpp mmvq, large rows | RTX 3090 | 88 to 94 % | autorepl.dev cexp_3683be |" in summary,
          "what others publish", summary)
    usage = run(suite, "--help")[1]
    check("bench-*.csv" in usage and "PTXGEN_STEP_SECONDS" in usage, "what it leaves", usage)

    # Each model file: generation, logits beside the emulator's, perplexity.
    modelled, alphabet = work / "modelled", work / "alphabet.gguf"
    subprocess.run([str(write_model), str(alphabet)], check=True)
    status, said, last = run(suite, modelled, "--device", "emulator", "--only", "^model/", "--model",
                             alphabet)
    check(status == 0, f"models exit with {status}", said)
    check(last == "3 passed, 0 failed, 0 skipped", f"the last line is {last!r}", said)
    for step, key in (("generate", "tokens_per_second"), ("perplexity", "perplexity")):
        text = (modelled / f"model-alphabet-{step}.json").read_text(encoding="utf-8")
        check(json.loads(text)[key] > 0, f"{key} of the model", text)
    text = (modelled / "model-alphabet-logits.json").read_text(encoding="utf-8")
    check(json.loads(text)["logits_nmse"] == 0, "the emulator agrees with itself", text)
    check(json.loads(text)["logits_compared"] == 14, "positions compared", text)
    summary = (modelled / "summary.md").read_text(encoding="utf-8")
    check("## Models" in summary and "| alphabet | " in summary, "the summary has models", summary)
    check(run(suite, out, "--model", work / "none.gguf")[0] == 2, "a model file that is not there")

    # A GPU that is not there is skipped loudly; nothing is run.
    nothing = "/nonexistent/libcuda.so.1"
    status, said, last = run(suite, out, PTXGEN_LIBCUDA_PATH=nothing)
    check(status == 77, f"without a GPU the exit status is {status}", said)
    check("SKIP: no GPU cuda:0: " in said and nothing in said, "why it was skipped", said)
    check(json.loads((out / "result.json").read_text(encoding="utf-8"))["status"] == "skipped",
          "result.json of a skipped run")

    status, said, last = run(suite, out, "--device", "emulator", "--only", "^nothing$")
    check(status == 1, f"a run of nothing exits with {status}", said)
    check(last == "0 passed, 0 failed, 0 skipped", f"the last line is {last!r}", said)

    # A case that fails, one that is skipped and a benchmark that breaks.
    program(bundle, "runtime_functional_fake", """#!/bin/sh
case $1 in
  --list-test-names-only) printf 'good, one\\nbad\\nabsent\\n' ;;
  'good\\, one') ;;
  bad) exit 1 ;;
  absent) echo 'SKIP: no such thing'; exit 77 ;;
  *) echo "filter $1"; exit 3 ;;
esac
""")
    program(bundle, "bench_fake", "#!/bin/sh\necho broken\nexit 4\n")
    status, said, last = run(suite, out, "--device", "emulator", "--only", "fake")
    check(status == 1, f"after a failure the exit status is {status}", said)
    check(last == "1 passed, 2 failed, 1 skipped", f"the last line is {last!r}", said)
    steps = {step["name"]: step for step in json.loads(
        (out / "result.json").read_text(encoding="utf-8"))["steps"]}
    check(steps["test/runtime_functional_fake/absent"]["reason"] == "no such thing", "reason", str(steps))
    check(steps["bench/bench_fake"]["reason"] == "exit status 4", "exit status", str(steps))

    check(run(suite)[0] == 2, "a call without a folder is wrong")
    check(run(suite, out, "--wrong")[0] == 2, "an unknown option is wrong")
    check(run(suite, out, "--programs", work)[0] == 2, "a folder without programs is wrong")
print("the suite runs, skips, fails and reports as it says")
