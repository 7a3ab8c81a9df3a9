#!/usr/bin/env python3
# tests/kernels/gguf_blocks.py - blocks and values by PyPI's gguf and libgguf
"""usage: gguf_blocks.py FOLDER SEED

For each block format TYPE, writes into FOLDER:
  TYPE.random.blocks     random bytes, without infinite and NaN scales
  TYPE.quantized.blocks  blocks of normal random values, by libgguf
  TYPE.KIND.values       their values by gguf.quants.dequantize, f32
  TYPE.floats            (q8_0, q8_1, q4_0) the normal random values that were quantized
Neither package has q8_1: it is a q8_0 block with a sum, which is written as 0.
Prints `SKIP reason` if a package cannot be imported.
"""
import os
import sys

sys.dont_write_bytecode = True
try:
    import numpy as np
    import gguf
    import libgguf
except ImportError as error:
    print(f"SKIP {error}")
    sys.exit(0)

# f16 fields of a block, in bytes.
HALVES = {"q4_0": [0], "q4_1": [0, 2], "q5_0": [0], "q5_1": [0, 2], "q8_0": [0], "q8_1": [0, 2],
          "q4_k": [0, 2], "q5_k": [0, 2], "q6_k": [208]}
SIZES = {"q4_0": 18, "q4_1": 20, "q5_0": 22, "q5_1": 24, "q8_0": 34, "q8_1": 36, "q4_k": 144,
         "q5_k": 176, "q6_k": 210}
VALUES = 1 << 17


def known(name):
    """The type's number in GGUF."""
    return gguf.GGMLQuantizationType["Q8_0" if name == "q8_1" else name.upper()]


def without_sums(blocks):
    return np.ascontiguousarray(np.delete(blocks, [2, 3], axis=1))


def with_sums(blocks):
    return np.ascontiguousarray(np.insert(blocks, [2, 2], 0, axis=1))


def values(name, blocks):
    if name == "q8_1":
        blocks = without_sums(blocks)
    return gguf.quants.dequantize(blocks, known(name))


def random_blocks(name, count, random):
    blocks = random.integers(0, 256, size=(count, SIZES[name]), dtype=np.uint8)
    for at in HALVES[name]:
        upper = blocks[:, at + 1]
        # An exponent of 31 loses its highest bit.
        blocks[:, at + 1] = np.where(upper & 0x7c == 0x7c, upper & 0xbf, upper)
    return blocks


def quantized(name, floats):
    rows = libgguf.quantize_rows(floats, int(known(name)))
    size = SIZES[name] - (2 if name == "q8_1" else 0)
    blocks = np.asarray(rows, dtype=np.uint8).reshape(-1, size)
    return with_sums(blocks) if name == "q8_1" else blocks


def main():
    folder, seed = sys.argv[1], int(sys.argv[2])
    random = np.random.default_rng(seed)
    for name in SIZES:
        block_values = 256 if name.endswith("k") else 32
        floats = random.normal(size=(VALUES // 256, 256)).astype(np.float32)
        for kind, blocks in (("random", random_blocks(name, VALUES // block_values, random)),
                             ("quantized", quantized(name, floats))):
            blocks.tofile(os.path.join(folder, f"{name}.{kind}.blocks"))
            values(name, blocks).tofile(os.path.join(folder, f"{name}.{kind}.values"))
        if name in ("q8_0", "q8_1", "q4_0"):
            floats.tofile(os.path.join(folder, f"{name}.floats"))
    print(f"gguf with numpy {np.__version__}: {len(SIZES)} formats")


if __name__ == "__main__":
    main()
