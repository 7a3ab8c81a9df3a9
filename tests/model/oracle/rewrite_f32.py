#!/usr/bin/env python3
# tests/model/oracle/rewrite_f32.py - a model file with all of its weights as F32
"""usage: rewrite_f32.py MODEL.gguf OUTPUT.gguf

Every tensor is dequantised; metadata stay as they are, except for general.file_type.
"""
import os
import sys

sys.dont_write_bytecode = True
import packages  # before gguf and numpy
import gguf
import numpy as np

# What the writer adds by itself.
WRITTEN = ("GGUF.version", "GGUF.tensor_count", "GGUF.kv_count", "general.architecture",
           "general.file_type")


class Writer(gguf.GGUFWriter):
    """gguf's writer, with tensors that are dequantised when their turn comes."""

    def write_dequantized(self, tensors):
        for tensor in tensors:
            self.add_tensor_info(tensor.name, tuple(int(dim) for dim in reversed(tensor.shape)),
                                 np.dtype(np.float32), int(tensor.n_elements) * 4)
        self.write_header_to_file()
        self.write_kv_data_to_file()
        self.write_ti_data_to_file()
        for tensor in tensors:
            self.write_tensor_data(gguf.quants.dequantize(tensor.data, tensor.tensor_type))


def rewrite(source, target):
    reader = gguf.GGUFReader(source)
    writer = Writer(target + ".part", reader.get_field("general.architecture").contents())
    for name, field in reader.fields.items():
        if name in WRITTEN:
            continue
        kind = field.types[0]
        element = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(name, field.contents(), kind, element)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    writer.write_dequantized(reader.tensors)
    writer.close()
    os.replace(target + ".part", target)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    rewrite(sys.argv[1], sys.argv[2])
