#!/usr/bin/env python3
# tests/model/oracle/plants.py - that the comparison would notice a wrong graph
"""usage: plants.py FOLDER [CONFIGURATION...]

For each configuration (default: EVERYDAY, all where PTXGEN_TEST_FULL is 1), every mistake
of forward.PLANTS that bears on it is made in the fp64 pass; the logits must then differ from the
right ones by 10 times the bound that a decoder is held to, or more. Writes the models into FOLDER
and removes them. Exits 1 if a mistake would stay unseen, or one of them was made nowhere.
"""
import os
import sys

sys.dont_write_bytecode = True
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # threads cost more than toys gain
import packages  # before gguf and numpy
import forward
import synthetic
from forward import GEMMA3, LLAMA, QWEN2, QWEN3, Forward, Weights, nmse
from synthetic import POSITIONS

WANTED = 1e-8
# Configurations that all mistakes bear on.
EVERYDAY = ("llama-01", "llama-06", "qwen2-01", "qwen3-01", "gemma3-01", "gemma3-14")


def plants_of(c):
    """The mistakes that change the logits of a configuration."""
    plants = ["rope pairs", "rope base", "rope position", "scale", "causal", "norm plus one",
              "activation", "gate and up"]
    if c.epsilon > 1e-4:
        plants.append("epsilon")
    # Two head counts that are mapped alike: one KV head, or as many as there are heads.
    if 1 < c.kv_heads < c.heads:
        plants.append("gqa")
    if c.architecture == QWEN2:
        plants += ["biases", "v bias"]
    if c.architecture in (QWEN3, GEMMA3):
        plants += ["head norms", "head norms late"]
    if c.head:
        plants.append("tied")
    if c.rope_factors:
        plants += ["rope factors", "rope factors inverted"]
    if c.architecture != GEMMA3:
        return plants + (["rope scaling"] if c.rope_scaling != 1.0 else [])
    plants += ["post norms", "post norm late", "embedding scale", "gelu erf"]
    has_global = c.layers >= forward.GLOBAL_EVERY
    if c.rope_scaling != 1.0 and has_global:
        plants.append("rope scaling")
    if c.window < POSITIONS:
        plants += ["window long", "window nowhere", "global layers"]
        # A window of 0 is none.
        plants += ["window short"] if c.window > 1 else []
        plants += ["window everywhere"] if has_global else []
    if c.rope_base != 10000.0:
        plants += ["local base"] + (["global base"] if has_global else [])
    if c.rope_base == 10000.0 or not has_global:
        plants.remove("rope base")
    # A position that sees only itself has one weight, 1.
    if c.window == 1:
        return [plant for plant in plants
                if plant not in ("rope pairs", "rope position", "scale", "causal", "gqa",
                                 "head norms", "head norms late", "local base")]
    return plants


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    chosen = [synthetic.find(name) for name in sys.argv[2:] or EVERYDAY]
    if not sys.argv[2:] and os.environ.get("PTXGEN_TEST_FULL") == "1":
        chosen = synthetic.CONFIGURATIONS
    os.makedirs(sys.argv[1], exist_ok=True)
    least = {}
    for c in chosen:
        path = os.path.join(sys.argv[1], f"{c.name}.gguf")
        synthetic.write(c, path)
        weights, tokens = Weights(path, keep=True), synthetic.prompt(c)
        right = Forward(weights).logits(tokens)
        for plant in plants_of(c):
            seen = nmse(Forward(weights, plant).logits(tokens), right)
            least[plant] = min(least.get(plant, (float("inf"), "")), (seen, c.name))
            if not seen >= WANTED:
                print(f"{c.name}: '{plant}' changes the logits by an NMSE of {seen:.2e}, less than"
                      f" {WANTED:.0e}")
        os.remove(path)
    print(f"{'mistake':<24}{'least NMSE':<12}in")
    for plant, (seen, name) in sorted(least.items(), key=lambda item: item[1]):
        print(f"{plant:<24}{seen:<12.2e}{name}")
    unseen = [plant for plant, (seen, _) in least.items() if not seen >= WANTED]
    left_out = [] if sys.argv[2:] else sorted(set(forward.PLANTS) - set(least))
    if left_out:
        print(f"made in no configuration: {', '.join(left_out)}")
    print(f"{len(chosen)} configurations, {len(least)} mistakes, {len(unseen)} unseen somewhere")
    return 1 if unseen or left_out or not least else 0


if __name__ == "__main__":
    sys.exit(main())
