# tests/model/oracle/forward.py - logits of a decoder in fp64, by numpy
"""A forward pass over the dequantised weights of a GGUF file, written for its clarity.

Architectures: llama, qwen2, qwen3, gemma3. All positions of a prompt at once, every number of the
pass a 64-bit float, nothing cached. `plant` names one mistake to make on purpose (PLANTS), so that a
test can show that the comparison would notice it.
"""
import math

import gguf
import numpy as np

LLAMA, QWEN2, QWEN3, GEMMA3 = "llama", "qwen2", "qwen3", "gemma3"
ARCHITECTURES = (LLAMA, QWEN2, QWEN3, GEMMA3)
LOCAL_ROPE_BASE = 10000.0  # of gemma3's layers with a window
GLOBAL_EVERY = 6
ROWS_AT_ONCE = 16384

# Name of a mistake -> what is done wrong.
PLANTS = {
    "rope pairs": "the pairs of the other style: neighbours for halves, halves for neighbours",
    "rope base": "twice the frequency base",
    "rope factors": "rope_freqs.weight is not used",
    "rope factors inverted": "rope_freqs.weight multiplies the frequencies",
    "rope scaling": "the linear scaling is not used",
    "rope position": "positions count from 1 for queries only",
    "biases": "no biases on q, k and v",
    "v bias": "no bias on v",
    "epsilon": "1e-6 less than a half of the epsilon",
    "gqa": "head h reads KV head h mod kv_heads",
    "scale": "scale 1/d of the attention for 1/sqrt(d)",
    "causal": "a position does not see itself",
    "window short": "a window of one position less",
    "window long": "a window of one position more",
    "window everywhere": "global layers have the window too",
    "window nowhere": "no layer has a window",
    "global layers": "layer i is global where i mod 6 == 0",
    "local base": "layers with a window use rope.freq_base",
    "global base": "global layers use the local base",
    "head norms": "no norm over the heads of q and k",
    "head norms late": "the norm over the heads of q and k follows RoPE",
    "norm plus one": "1 is added to the weights of the norms",
    "post norms": "no norm after the attention and the FFN",
    "post norm late": "the norm after the attention follows the residual add",
    "embedding scale": "no factor on the embedding",
    "activation": "the other activation: gelu for silu, silu for gelu",
    "gelu erf": "gelu by erf for its tanh form",
    "gate and up": "gate and up exchanged",
    "tied": "the embedding as the head of a model that has its own",
}


def nmse(got, wanted):
    """The sum of squared differences over the sum of squares of what is wanted."""
    difference = np.asarray(got, np.float64) - wanted
    return float(np.sum(difference * difference) / np.sum(np.square(wanted, dtype=np.float64)))


def log_softmax(logits):
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def kl_divergence(got, wanted):
    """The mean over the rows of sum(p log(p / q)), p of `wanted`."""
    log_p = log_softmax(np.asarray(wanted, np.float64))
    log_q = log_softmax(np.asarray(got, np.float64))
    return float(np.mean(np.sum(np.exp(log_p) * (log_p - log_q), axis=-1)))


def silu(x):
    return x / (1.0 + np.exp(-x))


def gelu(x):
    return 0.5 * x * (1.0 + np.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3)))


def gelu_erf(x):
    return 0.5 * x * (1.0 + np.vectorize(math.erf)(x / math.sqrt(2.0)))


class Weights:
    """The metadata and the dequantised tensors of a file.

    `keep`: every tensor is dequantised once and kept; otherwise where it is used.
    """

    def __init__(self, path, keep=False):
        self.path = path
        self.reader = gguf.GGUFReader(path)
        self.tensors = {tensor.name: tensor for tensor in self.reader.tensors}
        self.kept = {} if keep else None

    def value(self, key, default=None):
        field = self.reader.get_field(key)
        if field is None:
            if default is None:
                raise KeyError(f"{self.path}: no {key}")
            return default
        return field.contents()

    def rows(self, name):
        return len(self.tensors[name].data)

    def get(self, name, rows=slice(None)):
        """Rows of a tensor in fp64."""
        if self.kept is None:
            return self.dequantized(name, rows)
        if name not in self.kept:
            self.kept[name] = self.dequantized(name, slice(None))
        return self.kept[name][rows]

    def dequantized(self, name, rows):
        tensor = self.tensors[name]
        data = np.asarray(tensor.data)[rows]
        return gguf.quants.dequantize(data, tensor.tensor_type).astype(np.float64)


class Forward:
    """The pass with the weights of a file, or of its path."""

    def __init__(self, weights, plant=None):
        assert plant is None or plant in PLANTS, plant
        self.weights = Weights(weights) if isinstance(weights, str) else weights
        self.plant = plant
        self.architecture = self.weights.value("general.architecture")
        if self.architecture not in ARCHITECTURES:
            raise ValueError(f"{self.weights.path}: architecture '{self.architecture}' is none of"
                             f" {', '.join(ARCHITECTURES)}")
        self.layers = self.of("block_count")
        self.width = self.of("embedding_length")
        self.heads = self.of("attention.head_count")
        self.kv_heads = self.of("attention.head_count_kv", self.heads)
        self.head_size = self.of("attention.key_length", self.width // self.heads)
        self.value_size = self.of("attention.value_length", self.width // self.heads)
        self.epsilon = self.of("attention.layer_norm_rms_epsilon")
        self.rope_base = self.of("rope.freq_base", 10000.0)
        self.rope_dims = self.of("rope.dimension_count", self.head_size)
        self.window = self.of("attention.sliding_window", 0)
        self.rope_factor = 1.0
        if self.of("rope.scaling.type", "none") == "linear":
            self.rope_factor = self.of("rope.scaling.factor")
        self.neighbours = self.architecture == LLAMA
        self.change_settings()

    def change_settings(self):
        """Mistakes in what is read from the file."""
        if self.plant == "rope pairs":
            self.neighbours = not self.neighbours
        elif self.plant == "rope base":
            self.rope_base *= 2.0
        elif self.plant == "rope scaling":
            self.rope_factor = 1.0
        elif self.plant == "epsilon":
            self.epsilon = self.epsilon / 2 - 1e-6
        elif self.plant == "window short":
            self.window -= 1
        elif self.plant == "window long":
            self.window += 1

    def of(self, key, default=None):
        return self.weights.value(f"{self.architecture}.{key}", default)

    def has(self, name):
        return name in self.weights.tensors

    def weight(self, name, rows=slice(None)):
        return self.weights.get(name, rows)

    def linear(self, x, name):
        y = x @ self.weight(f"{name}.weight").T
        left_out = self.plant == "biases" or (self.plant == "v bias" and name.endswith("attn_v"))
        if self.has(f"{name}.bias") and not left_out:
            y += self.weight(f"{name}.bias")
        return y

    def norm(self, x, name):
        gamma = self.weight(f"{name}.weight")
        if self.plant == "norm plus one":
            gamma = gamma + 1.0
        return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + self.epsilon) * gamma

    def is_local(self, layer):
        """Whether a layer sees the window only."""
        if self.architecture != GEMMA3 or self.window == 0:
            return False
        if self.plant == "global layers":
            return layer % GLOBAL_EVERY != 0
        return (layer + 1) % GLOBAL_EVERY != 0

    def rope(self, x, layer, queries):
        """x: [positions, heads, head_size]."""
        local = self.is_local(layer)
        base, factor = self.rope_base, self.rope_factor
        if self.plant == "global base" or (local and self.plant != "local base"):
            base = LOCAL_ROPE_BASE
        if local:
            factor = 1.0
        half = self.rope_dims // 2
        frequencies = base ** (-np.arange(half, dtype=np.float64) * 2.0 / self.rope_dims) / factor
        if self.has("rope_freqs.weight") and self.plant != "rope factors":
            factors = self.weight("rope_freqs.weight")[:half]
            frequencies = (frequencies * factors if self.plant == "rope factors inverted" else
                           frequencies / factors)
        first = 1.0 if queries and self.plant == "rope position" else 0.0
        angles = (np.arange(len(x)) + first)[:, None] * frequencies
        cosine, sine = np.cos(angles)[:, None, :], np.sin(angles)[:, None, :]
        at = slice(0, self.rope_dims)
        rotated, y = x[..., at], x.copy()
        if self.neighbours:
            a, b = rotated[..., 0::2], rotated[..., 1::2]
            y[..., at][..., 0::2] = a * cosine - b * sine
            y[..., at][..., 1::2] = a * sine + b * cosine
        else:
            a, b = rotated[..., :half], rotated[..., half:]
            y[..., :half] = a * cosine - b * sine
            y[..., half:self.rope_dims] = a * sine + b * cosine
        return y

    def visible(self, layer, positions):
        """[queries, keys]: whether a query sees a key."""
        query, key = np.arange(positions)[:, None], np.arange(positions)[None, :]
        seen = key <= query
        local = self.is_local(layer) or self.plant == "window everywhere"
        if local and self.window and self.plant != "window nowhere":
            seen &= query - key < self.window
        if self.plant == "causal":
            seen &= (key < query) | (query == 0)
        return seen

    def heads_of(self, x, name, norm, layer):
        heads = x.reshape(len(x), -1, self.head_size)
        has_norm = self.has(f"{norm}.weight") and self.plant != "head norms"
        late = self.plant == "head norms late"
        if has_norm and not late:
            heads = self.norm(heads, norm)
        heads = self.rope(heads, layer, queries=name == "q")
        return self.norm(heads, norm) if has_norm and late else heads

    def attention(self, x, layer):
        block, positions = f"blk.{layer}", len(x)
        q = self.heads_of(self.linear(x, f"{block}.attn_q"), "q", f"{block}.attn_q_norm", layer)
        k = self.heads_of(self.linear(x, f"{block}.attn_k"), "k", f"{block}.attn_k_norm", layer)
        v = self.linear(x, f"{block}.attn_v").reshape(positions, self.kv_heads, self.value_size)
        scale = 1.0 / (self.head_size if self.plant == "scale" else math.sqrt(self.head_size))
        hidden = np.where(self.visible(layer, positions), 0.0, -np.inf)
        output = np.empty((positions, self.heads, self.value_size))
        for head in range(self.heads):
            kv = head // (self.heads // self.kv_heads)
            if self.plant == "gqa":
                kv = head % self.kv_heads
            scores = q[:, head] @ k[:, kv].T * scale + hidden
            scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
            output[:, head] = scores / scores.sum(axis=-1, keepdims=True) @ v[:, kv]
        return self.linear(output.reshape(positions, -1), f"{block}.attn_output")

    def activation(self, x):
        if self.plant == "gelu erf":
            return gelu_erf(x)
        return gelu(x) if (self.architecture == GEMMA3) != (self.plant == "activation") else silu(x)

    def ffn(self, x, layer):
        block = f"blk.{layer}"
        gate = self.linear(x, f"{block}.ffn_gate")
        up = self.linear(x, f"{block}.ffn_up")
        if self.plant == "gate and up":
            gate, up = up, gate
        return self.linear(self.activation(gate) * up, f"{block}.ffn_down")

    def layer(self, h, layer):
        block = f"blk.{layer}"
        post = self.architecture == GEMMA3 and self.plant != "post norms"
        o = self.attention(self.norm(h, f"{block}.attn_norm"), layer)
        if post and self.plant == "post norm late":
            h = self.norm(h + o, f"{block}.post_attention_norm")
        else:
            h = h + (self.norm(o, f"{block}.post_attention_norm") if post else o)
        f = self.ffn(self.norm(h, f"{block}.ffn_norm"), layer)
        return h + (self.norm(f, f"{block}.post_ffw_norm") if post else f)

    def head(self, x):
        tied = not self.has("output.weight") or self.plant == "tied"
        name = "token_embd.weight" if tied else "output.weight"
        return np.concatenate([x @ self.weight(name, slice(row, row + ROWS_AT_ONCE)).T
                               for row in range(0, self.weights.rows(name), ROWS_AT_ONCE)], axis=1)

    def logits(self, tokens):
        """[positions, vocabulary]."""
        h = self.weight("token_embd.weight", np.asarray(tokens))
        if self.architecture == GEMMA3 and self.plant != "embedding scale":
            h = h * math.sqrt(self.width)
        for layer in range(self.layers):
            h = self.layer(h, layer)
        return self.head(self.norm(h, "output_norm"))
