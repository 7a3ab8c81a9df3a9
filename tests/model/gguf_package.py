#!/usr/bin/env python3
# tests/model/gguf_package.py - model files by PyPI's gguf
"""usage: gguf_package.py FOLDER SEED

Writes into FOLDER by gguf.GGUFWriter:
  model.gguf     values and tensors of all types that it can write
  aligned.gguf   the same with an alignment of 128 bytes
  big.gguf       the same, big-endian
  expected.json  {"metadata": {key: value}, "types": {key: type}, "tensors": {name: {"type", "dims",
                 "data" (hex)}}, "blocks": {number: [name, values, bytes]}}
Prints `SKIP reason` if the package cannot be imported.
"""
import json
import os
import sys

sys.dont_write_bytecode = True
try:
    import numpy as np
    import gguf
except ImportError as error:
    print(f"SKIP {error}")
    sys.exit(0)

# Q8_1: the package counts f32 fields, 40 bytes a block; ggml has f16 fields and 36 bytes.
LEFT_OUT = ("IQ", "TQ", "MX", "NV", "Q1", "Q8_1")


def values(random):
    """Key -> (method of the writer, value, type)."""
    known = {}
    for bits in (8, 16, 32, 64):
        lowest = -(1 << (bits - 1))
        known[f"test.u{bits}"] = (f"add_uint{bits}", (1 << bits) - 1, f"u{bits}")
        known[f"test.i{bits}"] = (f"add_int{bits}", lowest, f"i{bits}")
    known["test.f32"] = ("add_float32", float(np.float32(random.normal())), "f32")
    known["test.f64"] = ("add_float64", float(random.normal()), "f64")
    known["test.true"] = ("add_bool", True, "bool")
    known["test.false"] = ("add_bool", False, "bool")
    known["test.text"] = ("add_string", "\u2581an \"example\"\n", "string")
    tokens = [f"token {number}" for number in range(1000)]
    known["test.tokens"] = ("add_array", tokens, "string")
    known["test.numbers"] = ("add_array", [int(x) for x in random.integers(-99, 99, 50)], "i32")
    known["test.scores"] = ("add_array", [float(np.float32(x)) for x in random.normal(size=9)],
                            "f32")
    known["test.flags"] = ("add_array", [True, False, True], "bool")
    return known


def tensors(random):
    """Name -> (type, bytes of rows, dims from the contiguous one)."""
    known = {}
    for kind in gguf.GGMLQuantizationType:
        if kind.name.startswith(LEFT_OUT):
            continue
        block_values, block_bytes = gguf.GGML_QUANT_SIZES[kind]
        blocks, rows = int(random.integers(1, 4)), int(random.integers(1, 6))
        data = random.integers(0, 256, size=(rows, blocks * block_bytes), dtype=np.uint8)
        known[f"{kind.name}.weight"] = (kind, data, [blocks * block_values, rows])
    return known


def write(path, metadata, weights, alignment=None, endian=gguf.GGUFEndian.LITTLE):
    writer = gguf.GGUFWriter(path, "llama", endianess=endian)
    if alignment is not None:
        writer.add_custom_alignment(alignment)
    for key, (method, value, _) in metadata.items():
        getattr(writer, method)(key, value)
    for name, (kind, data, _) in weights.items():
        writer.add_tensor(name, data, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main():
    folder, seed = sys.argv[1], int(sys.argv[2])
    random = np.random.default_rng(seed)
    metadata, weights = values(random), tensors(random)
    write(os.path.join(folder, "model.gguf"), metadata, weights)
    write(os.path.join(folder, "aligned.gguf"), metadata, weights, alignment=128)
    write(os.path.join(folder, "big.gguf"), metadata, {}, endian=gguf.GGUFEndian.BIG)
    expected = {
        "metadata": {key: value for key, (_, value, _) in metadata.items()},
        "types": {key: kind for key, (_, _, kind) in metadata.items()},
        "tensors": {name: {"type": kind.name, "dims": dims, "data": data.tobytes().hex()}
                    for name, (kind, data, dims) in weights.items()},
        "blocks": {int(kind): [kind.name, *gguf.GGML_QUANT_SIZES[kind]]
                   for kind in gguf.GGMLQuantizationType},
    }
    with open(os.path.join(folder, "expected.json"), "w", encoding="utf-8") as file:
        json.dump(expected, file)
    print(f"gguf with numpy {np.__version__}: {len(metadata)} values, {len(weights)} tensors")


if __name__ == "__main__":
    main()
