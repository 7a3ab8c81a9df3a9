#!/usr/bin/env python3
# tests/model/oracle/synthetic.py - toy models of every architecture, as GGUF files
"""usage: synthetic.py NAME OUTPUT.gguf    writes one configuration
       synthetic.py                     lists the configurations

A configuration gives the same file on every machine. Weights are scaled so that the mistakes of
forward.PLANTS show: queries and keys that spread the scores by about 2, an epsilon that counts
beside the mean square, norms and biases far from neutral.
"""
import dataclasses
import sys
import zlib

sys.dont_write_bytecode = True
import packages  # before gguf and numpy
import gguf
import libgguf
import numpy as np

from forward import ARCHITECTURES, GEMMA3, LLAMA, QWEN2, QWEN3

POSITIONS = 40
FIRST_PIECE = 259  # ids: <unk>, <s>, </s>, 256 bytes, pieces
FLOATS = ("F32", "F16", "BF16")
BLOCKS_32 = ("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0")
BLOCKS_256 = ("Q4_K", "Q5_K", "Q6_K")
TYPES = FLOATS + BLOCKS_32 + BLOCKS_256
MIXED = "mixed"
# A head has whole blocks of q8_0.
CACHES = ("f16", "bf16", "q8_0")


@dataclasses.dataclass(frozen=True)
class Configuration:
    """`types`: of the matrices of the layers, "mixed" for all types in turn; `embedding` and `head`
    of those; no `head`: the embedding is the head. `window` of gemma3; `rope_dims`: given in the file,
    the whole head. `cache`: the type of KV cache with which the model is run besides f32.
    """
    architecture: str
    number: int
    heads: int
    kv_heads: int
    head_size: int
    width: int
    ffn: int
    types: str
    embedding: str = "F32"
    head: str = ""
    layers: int = 2
    vocabulary: int = 263
    window: int = 0
    rope_base: float = 10000.0
    rope_dims: int = 0
    rope_factors: bool = False
    rope_scaling: float = 1.0
    epsilon: float = 1e-2
    cache: str = "f16"

    @property
    def name(self):
        return f"{self.architecture}-{self.number:02}"

    def describe(self):
        parts = [f"{self.heads}/{self.kv_heads} heads of {self.head_size}", f"width {self.width}",
                 f"ffn {self.ffn}", f"layers {self.layers}", self.types,
                 f"embd {self.embedding}", f"head {self.head}" if self.head else "tied"]
        if self.window:
            parts.append(f"window {self.window}")
        if self.rope_base != 10000.0:
            parts.append(f"base {self.rope_base:g}")
        if self.rope_dims:
            parts.append(f"rope dims {self.rope_dims}")
        if self.rope_factors:
            parts.append("rope factors")
        if self.rope_scaling != 1.0:
            parts.append(f"rope/{self.rope_scaling:g}")
        return ", ".join(parts)


def rows(architecture, *table):
    """Numbers and caches by position in the table; values in the order of Configuration."""
    known = []
    for number, (*values, options) in enumerate(table):
        caches = CACHES if values[2] % 32 == 0 else CACHES[:2]
        known.append(Configuration(architecture, number + 1, *values, **options,
                                   cache=caches[number % len(caches)]))
    return known


# heads, KV heads, head size, width, ffn, types
CONFIGURATIONS = (
    *rows(
        LLAMA,
        (3, 1, 32, 96, 160, MIXED, {"head": "Q8_0", "embedding": "Q4_0", "rope_base": 1e5}),
        (4, 4, 16, 64, 96, "F32", {}),
        (9, 3, 64, 576, 192, "Q4_1", {"embedding": "Q8_0", "rope_base": 1e5, "epsilon": 1e-5}),
        (5, 5, 48, 240, 130, "F16", {"head": "F16", "vocabulary": 301}),
        (7, 1, 16, 112, 77, "BF16", {"embedding": "BF16"}),
        (8, 2, 64, 256, 512, "Q4_K", {"embedding": "Q6_K", "rope_factors": True,
                                      "rope_base": 5e5}),
        (6, 2, 128, 256, 256, "Q5_K", {"head": "Q6_K", "embedding": "Q4_K", "vocabulary": 515}),
        (2, 1, 256, 512, 256, "Q6_K", {"embedding": "Q5_K", "epsilon": 1e-1}),
        (1, 1, 64, 64, 64, "Q4_0", {"embedding": "Q4_1", "layers": 1}),
        (15, 5, 32, 160, 224, "Q5_0", {"embedding": "Q5_0", "rope_scaling": 4.0}),
        (14, 2, 16, 224, 96, "Q5_1", {"embedding": "Q5_1", "head": "Q5_1", "layers": 3}),
        (11, 11, 32, 96, 352, "Q8_0", {"embedding": "F16", "head": "BF16"}),
        (4, 2, 80, 320, 288, "Q8_0", {"head": "Q4_0", "rope_factors": True,
                                     "rope_scaling": 2.0}),
        (8, 8, 32, 256, 768, MIXED, {"embedding": "Q6_K", "head": "Q4_K", "layers": 4}),
        (3, 3, 112, 48, 33, "F32", {"head": "F32", "vocabulary": 277, "epsilon": 1e-3}),
        (16, 1, 16, 64, 129, "BF16", {"head": "F16", "vocabulary": 1021}),
        (16, 16, 16, 256, 256, "Q6_K", {"head": "F32", "embedding": "Q8_0"}),
        (4, 1, 96, 128, 320, MIXED, {"embedding": "Q5_1", "rope_factors": True, "layers": 3}),
    ),
    *rows(
        QWEN2,
        (7, 1, 32, 224, 192, MIXED, {"embedding": "Q8_0", "rope_base": 1e6}),
        (14, 2, 64, 128, 256, "Q8_0", {"embedding": "Q8_0", "rope_base": 1e6}),
        (4, 4, 16, 64, 100, "F32", {"head": "F32"}),
        (3, 1, 128, 96, 81, "F16", {"embedding": "F16"}),
        (24, 3, 32, 256, 512, "Q4_K", {"embedding": "Q4_K", "head": "Q6_K", "rope_base": 1e6}),
        (8, 4, 64, 512, 256, "Q5_K", {"embedding": "Q5_K", "epsilon": 1e-1}),
        (5, 1, 64, 160, 96, "Q4_0", {"embedding": "Q4_0", "head": "Q8_0"}),
        (9, 9, 32, 288, 64, "Q4_1", {"embedding": "Q4_1", "vocabulary": 999}),
        (10, 5, 16, 160, 320, "Q5_0", {"embedding": "Q5_0", "layers": 4}),
        (6, 3, 48, 288, 160, "Q5_1", {"head": "Q5_1", "embedding": "BF16"}),
        (2, 2, 128, 256, 768, "Q6_K", {"embedding": "Q6_K"}),
        (15, 3, 16, 80, 72, "BF16", {"head": "BF16", "epsilon": 1e-3}),
        (8, 2, 32, 256, 512, MIXED, {"embedding": "Q5_1", "head": "Q5_K", "layers": 4}),
        (4, 2, 64, 256, 128, "Q8_0", {"rope_dims": 64, "rope_base": 1e5}),
        (5, 5, 32, 160, 96, "Q5_0", {"rope_scaling": 8.0, "embedding": "F16"}),
    ),
    *rows(
        QWEN3,
        (5, 1, 64, 96, 160, MIXED, {"embedding": "Q8_0", "rope_base": 1e6}),
        (4, 2, 128, 128, 192, "Q8_0", {"embedding": "Q8_0", "rope_base": 1e6}),
        (3, 3, 16, 64, 100, "F32", {"head": "F32"}),
        (6, 2, 32, 96, 81, "F16", {"embedding": "F16", "vocabulary": 1023}),
        (16, 8, 32, 256, 256, "Q4_K", {"embedding": "Q4_K", "head": "Q6_K", "rope_base": 1e6}),
        (4, 1, 64, 256, 512, "Q5_K", {"embedding": "Q5_K", "epsilon": 1e-1}),
        (7, 7, 32, 64, 96, "Q4_0", {"embedding": "Q4_0", "head": "Q8_0"}),
        (10, 2, 48, 128, 64, "Q4_1", {"embedding": "Q4_1", "layers": 3}),
        (9, 3, 32, 160, 288, "Q5_0", {"embedding": "Q5_0"}),
        (2, 1, 80, 96, 160, "Q5_1", {"head": "Q5_1", "embedding": "BF16"}),
        (2, 2, 256, 256, 256, "Q6_K", {"embedding": "Q6_K"}),
        (14, 2, 16, 80, 59, "BF16", {"head": "BF16", "epsilon": 1e-3}),
        (8, 4, 32, 256, 512, MIXED, {"embedding": "Q6_K", "head": "Q4_1", "layers": 4}),
        (3, 1, 128, 128, 96, "Q8_0", {"rope_dims": 128, "rope_base": 1e5}),
        (6, 6, 16, 96, 96, "Q5_1", {"rope_scaling": 8.0}),
    ),
    *rows(
        GEMMA3,
        (3, 1, 32, 96, 160, MIXED, {"embedding": "Q8_0", "layers": 7, "window": 8,
                                    "rope_base": 1e6}),
        (4, 1, 256, 128, 96, "Q5_0", {"embedding": "Q8_0", "layers": 6, "window": 16,
                                      "rope_base": 1e6}),
        (4, 4, 16, 64, 96, "F32", {"layers": 6, "window": 5, "rope_base": 1e6}),
        (5, 5, 32, 64, 66, "F16", {"embedding": "F16", "layers": 6, "window": 7}),
        (8, 4, 32, 256, 256, "Q4_K", {"embedding": "Q8_0", "window": 512, "layers": 6,
                                      "rope_base": 1e6}),
        (6, 2, 128, 256, 256, "Q5_K", {"embedding": "Q6_K", "layers": 2, "window": 1}),
        (7, 1, 32, 96, 64, "Q4_0", {"embedding": "Q4_0", "layers": 12, "window": 31,
                                   "rope_base": 1e6}),
        (9, 3, 32, 96, 96, "Q4_1", {"embedding": "Q4_1", "layers": 6, "window": 32,
                                   "rope_base": 1e6}),
        (10, 5, 16, 64, 64, "Q5_1", {"embedding": "Q5_1", "layers": 6, "window": 33,
                                    "rope_base": 1e6}),
        (2, 2, 64, 128, 128, "Q8_0", {"embedding": "Q5_0", "layers": 6, "window": 39,
                                     "rope_base": 1e6}),
        (4, 2, 64, 256, 256, "Q6_K", {"embedding": "Q5_K", "layers": 6, "window": 40,
                                     "rope_base": 1e6, "epsilon": 1e-1}),
        (3, 3, 48, 80, 72, "BF16", {"embedding": "BF16", "layers": 6, "window": 17,
                                   "rope_base": 1e6, "epsilon": 1e-3}),
        (8, 2, 32, 256, 512, MIXED, {"embedding": "Q4_K", "layers": 8, "window": 9,
                                    "rope_base": 1e6}),
        (15, 3, 16, 64, 80, "F32", {"layers": 6, "window": 2, "rope_base": 1e6,
                                   "rope_scaling": 8.0, "vocabulary": 1021}),
        (4, 1, 80, 160, 96, "Q8_0", {"embedding": "Q8_0", "layers": 7, "window": 10,
                                    "rope_base": 1e6, "vocabulary": 517}),
        (1, 1, 96, 96, 96, "Q4_0", {"embedding": "F16", "layers": 1, "window": 3}),
    ),
)


# Of an everyday run: quick ones of every architecture.
EVERYDAY = ("llama-01", "qwen2-12", "qwen3-04", "gemma3-14")


def find(name):
    for configuration in CONFIGURATIONS:
        if configuration.name == name:
            return configuration
    sys.exit(f"no configuration '{name}'; there are"
             f" {', '.join(configuration.name for configuration in CONFIGURATIONS)}")


class Model:
    """Draws the tensors of a configuration and gives them to a writer."""

    def __init__(self, configuration, writer):
        self.configuration = configuration
        self.writer = writer
        self.random = np.random.default_rng(zlib.crc32(configuration.name.encode()))
        self.matrices = 0

    def type_of(self, wanted, columns):
        """A type by name; of "mixed" the next one whose blocks fit a row."""
        if wanted != MIXED:
            return gguf.GGMLQuantizationType[wanted]
        while True:
            kind = gguf.GGMLQuantizationType[TYPES[self.matrices % len(TYPES)]]
            self.matrices += 1
            if columns % gguf.GGML_QUANT_SIZES[kind][0] == 0:
                return kind

    def matrix(self, name, row_count, columns, kind, deviation):
        """`deviation` of a weight."""
        values = self.random.normal(0.0, deviation, (row_count, columns)).astype(np.float32)
        kind = self.type_of(kind, columns)
        block = gguf.GGML_QUANT_SIZES[kind][0]
        assert columns % block == 0, f"{name}: {columns} columns in blocks of {block}"
        if kind == gguf.GGMLQuantizationType.F32:
            self.writer.add_tensor(f"{name}.weight", values)
        elif kind == gguf.GGMLQuantizationType.F16:
            self.writer.add_tensor(f"{name}.weight", values.astype(np.float16))
        else:
            self.writer.add_tensor(f"{name}.weight", libgguf.quantize_rows(values, int(kind)),
                                   raw_dtype=kind)

    def linear(self, name, row_count, columns, gain=1.0):
        """Outputs deviate by about `gain` where inputs deviate by 1."""
        self.matrix(name, row_count, columns, self.configuration.types, gain / columns**0.5)

    def norm(self, name, size):
        gamma = 1.0 + 0.3 * self.random.normal(size=size)
        self.writer.add_tensor(f"{name}.weight", gamma.astype(np.float32))

    def bias(self, name, size):
        values = 0.7 * self.random.normal(size=size)
        self.writer.add_tensor(f"{name}.bias", values.astype(np.float32))

    def attention(self, block):
        c = self.configuration
        self.norm(f"{block}.attn_norm", c.width)
        for name, heads, gain in (("q", c.heads, 1.4), ("k", c.kv_heads, 1.4),
                                  ("v", c.kv_heads, 1.5)):
            self.linear(f"{block}.attn_{name}", heads * c.head_size, c.width, gain)
            if c.architecture == QWEN2:
                self.bias(f"{block}.attn_{name}", heads * c.head_size)
            if c.architecture in (QWEN3, GEMMA3) and name != "v":
                self.norm(f"{block}.attn_{name}_norm", c.head_size)
        self.linear(f"{block}.attn_output", c.width, c.heads * c.head_size, 1.5)
        if c.architecture == GEMMA3:
            self.norm(f"{block}.post_attention_norm", c.width)

    def ffn(self, block):
        c = self.configuration
        self.norm(f"{block}.ffn_norm", c.width)
        self.linear(f"{block}.ffn_gate", c.ffn, c.width, 1.5)
        self.linear(f"{block}.ffn_up", c.ffn, c.width, 1.5)
        self.linear(f"{block}.ffn_down", c.width, c.ffn)
        if c.architecture == GEMMA3:
            self.norm(f"{block}.post_ffw_norm", c.width)

    def tensors(self):
        c = self.configuration
        # Small enough that epsilon counts beside the mean square of the residual.
        deviation = 0.7 if c.head else 0.2
        if c.architecture == GEMMA3:
            deviation = 0.7 / c.width**0.5
        self.matrix("token_embd", c.vocabulary, c.width, c.embedding, deviation)
        for layer in range(c.layers):
            self.attention(f"blk.{layer}")
            self.ffn(f"blk.{layer}")
        self.norm("output_norm", c.width)
        if c.head:
            self.matrix("output", c.vocabulary, c.width, c.head, 2.0 / c.width**0.5)
        if c.rope_factors:
            factors = 1.0 + 7.0 * self.random.random((c.rope_dims or c.head_size) // 2)
            self.writer.add_tensor("rope_freqs.weight", factors.astype(np.float32))


def add_metadata(c, writer):
    writer.add_name(c.name)
    writer.add_block_count(c.layers)
    writer.add_context_length(128)
    writer.add_embedding_length(c.width)
    writer.add_feed_forward_length(c.ffn)
    writer.add_head_count(c.heads)
    writer.add_head_count_kv(c.kv_heads)
    writer.add_key_length(c.head_size)
    writer.add_value_length(c.head_size)
    writer.add_layer_norm_rms_eps(c.epsilon)
    writer.add_rope_freq_base(c.rope_base)
    writer.add_vocab_size(c.vocabulary)
    if c.rope_dims:
        writer.add_rope_dimension_count(c.rope_dims)
    if c.rope_scaling != 1.0:
        writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        writer.add_rope_scaling_factor(c.rope_scaling)
    if c.window:
        writer.add_sliding_window(c.window)


def add_tokenizer(c, writer):
    """Single bytes, and pieces that no text has."""
    tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)]
    kinds = [gguf.TokenType.UNKNOWN, gguf.TokenType.CONTROL, gguf.TokenType.CONTROL]
    kinds += [gguf.TokenType.BYTE] * 256
    for number in range(c.vocabulary - FIRST_PIECE):
        tokens.append(f"\u2581w{number}")
        kinds.append(gguf.TokenType.NORMAL)
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([float(-index) for index in range(c.vocabulary)])
    writer.add_token_types(kinds)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)


def write(c, path):
    assert c.architecture in ARCHITECTURES and c.vocabulary > FIRST_PIECE
    writer = gguf.GGUFWriter(path, c.architecture)
    add_metadata(c, writer)
    add_tokenizer(c, writer)
    Model(c, writer).tensors()
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def prompt(c, positions=POSITIONS):
    """Tokens of a configuration: any of the vocabulary, some twice."""
    random = np.random.default_rng(zlib.crc32(f"prompt of {c.name}".encode()))
    tokens = [int(token) for token in random.integers(0, c.vocabulary, positions)]
    for position in range(7, positions, 7):
        tokens[position] = tokens[position // 2]
    return tokens


def main():
    if len(sys.argv) == 3:
        write(find(sys.argv[1]), sys.argv[2])
        return
    if len(sys.argv) != 1:
        sys.exit(__doc__)
    for configuration in CONFIGURATIONS:
        print(f"{configuration.name:<12}{configuration.describe()}")
    print(f"{len(CONFIGURATIONS)} configurations", file=sys.stderr)


if __name__ == "__main__":
    main()
