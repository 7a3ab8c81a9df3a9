// tests/emulator/cuda/llm_test.cpp - what language models run: norms, attention, quantised products
#include <algorithm>

#include "cuda_case.hpp"
#include "numbers.hpp"

using namespace ptxgen::test;

namespace {

// Blocks of an LLM's weights: 2 bytes of scale, then the quants.
void put_half(std::vector<std::uint8_t>& bytes, std::size_t where, std::uint16_t bits) {
  bytes[where] = static_cast<std::uint8_t>(bits);
  bytes[where + 1] = static_cast<std::uint8_t>(bits >> 8);
}
double half_at(const std::vector<std::uint8_t>& bytes, std::size_t where) {
  return half_value(static_cast<std::uint16_t>(bytes[where] | bytes[where + 1] << 8));
}

}  // namespace

TEST_CASE("cuda: softmax, online and causal") {
  run_case({"softmax.cu"}, [](CudaRun& run) {
    const std::size_t rows = 10, columns = 150;
    const auto in = run.dice.floats(rows * columns, -10, 10);
    const auto device_in = run.input(in);
    const auto soft = [&](std::size_t end_of_row, double scale) {
      std::vector<double> out(rows * columns);
      for (std::size_t r = 0; r < rows; ++r) {
        const std::size_t end = end_of_row == 0 ? r + 1 : end_of_row;
        double sum = 0;
        for (std::size_t i = 0; i < end; ++i) sum += std::exp(in[r * columns + i] * scale);
        for (std::size_t i = 0; i < end; ++i)
          out[r * columns + i] = std::exp(in[r * columns + i] * scale) / sum;
      }
      return out;
    };
    // Arguments of exp up to 20: an error of 20 * 2^-22 from ex2.approx and its scaling, and sums.
    const auto online = run.output<float>(rows * columns);
    run.launch("softmax_online", {3}, {32, 4}, device_in, online, as_int(rows), as_int(columns));
    run.check_close(online, soft(columns, 1), 1e-9, 2e-5);
    const auto causal = run.output<float>(rows * columns);
    run.launch_shared("softmax_causal", {rows}, {64}, 64 * 4, device_in, causal, as_int(columns),
                      0.5f);
    run.check_close(causal, soft(0, 0.5), 1e-9, 1e-5);
  });
}

TEST_CASE("cuda: layer norm") {
  run_case({"layer_norm.cu"}, [](CudaRun& run) {
    const std::size_t rows = 4, columns = 300;
    const auto in = run.dice.floats(rows * columns, -3, 5);
    const auto gain = run.dice.floats(columns, 0.5f, 2);
    const auto bias = run.dice.floats(columns, -1, 1);
    const auto out = run.output<float>(rows * columns);
    run.launch("layer_norm", {rows}, {128}, run.input(in), run.input(gain), run.input(bias), out,
               as_int(columns), 1e-5f);
    std::vector<double> expected(rows * columns);
    for (std::size_t r = 0; r < rows; ++r) {
      double mean = 0, square = 0;
      for (std::size_t i = 0; i < columns; ++i) mean += in[r * columns + i] / double{columns};
      for (std::size_t i = 0; i < columns; ++i)
        square += std::pow(in[r * columns + i] - mean, 2) / double{columns};
      for (std::size_t i = 0; i < columns; ++i)
        expected[r * columns + i] =
            (in[r * columns + i] - mean) / std::sqrt(square + 1e-5) * gain[i] + bias[i];
    }
    run.check_close(out, expected, 1e-5, 1e-5);
  });
}

TEST_CASE("cuda: RMS norm") {
  run_case({"rms_norm.cu"}, [](CudaRun& run) {
    const std::size_t rows = 3, columns = 256;
    const auto in = run.dice.floats(rows * columns, -4, 4);
    const auto gain = run.dice.floats(columns, 0.5f, 2);
    const auto out = run.output<float>(rows * columns);
    run.launch("rms_norm", {rows}, {64}, run.input(in), run.input(gain), out, as_int(columns / 4),
               1e-6f);
    std::vector<double> expected(rows * columns);
    for (std::size_t r = 0; r < rows; ++r) {
      double sum = 0;
      for (std::size_t i = 0; i < columns; ++i) sum += std::pow(double{in[r * columns + i]}, 2);
      for (std::size_t i = 0; i < columns; ++i)
        expected[r * columns + i] = in[r * columns + i] / std::sqrt(sum / columns + 1e-6) * gain[i];
    }
    run.check_close(out, expected, 1e-6, 1e-5);

    // Quarters: sums of two halves are exact.
    std::vector<std::uint16_t> x, residual, weight;
    for (std::size_t i = 0; i < rows * columns; ++i) {
      x.push_back(half_bits(run.dice.between(-40, 40) * 0.25));
      residual.push_back(half_bits(run.dice.between(-40, 40) * 0.25));
    }
    for (std::size_t i = 0; i < columns; ++i)
      weight.push_back(half_bits(run.dice.between(2, 8) * 0.25));
    const auto device_residual = run.input(residual);
    const auto normal = run.output<std::uint16_t>(rows * columns);
    run.launch("rms_norm_residual", {rows}, {32}, run.input(x), device_residual, run.input(weight),
               normal, as_int(columns / 2), 1e-6f);
    std::vector<std::uint16_t> sums(rows * columns);
    std::vector<double> wanted(rows * columns), got;
    for (std::size_t r = 0; r < rows; ++r) {
      double square = 0;
      for (std::size_t i = r * columns; i < (r + 1) * columns; ++i) {
        const double sum = half_value(x[i]) + half_value(residual[i]);
        sums[i] = half_bits(sum);
        square += sum * sum;
      }
      for (std::size_t i = r * columns; i < (r + 1) * columns; ++i)
        wanted[i] = half_value(sums[i]) / std::sqrt(square / columns + 1e-6) *
                    half_value(weight[i % columns]);
    }
    run.check_equal(device_residual, sums);
    for (const std::uint16_t bits : run.read(normal)) got.push_back(half_value(bits));
    run.check_close(got, wanted, 1e-6, 0x1p-11 * 1.05);  // one rounding to half
  });
}

TEST_CASE("cuda: rotary position embedding") {
  run_case({"rope.cu"}, [](CudaRun& run) {
    const std::size_t tokens = 5, heads = 3, width = 32;
    const std::vector<std::int32_t> positions{0, 1, 17, 100, 999};
    const auto in = run.dice.floats(tokens * heads * width, -2, 2);
    for (const bool adjacent : {true, false}) {
      const auto x = run.input(in);
      const auto device_positions = run.input(positions);
      if (adjacent) {
        run.launch("rope_adjacent", {tokens, heads}, {32}, x, device_positions, as_int(heads),
                   as_int(width), 10000.0f);
      } else {
        run.launch("rope_halves", {tokens, heads}, {8}, x, device_positions, as_int(heads),
                   as_int(width), std::log2(10000.0f));
      }
      std::vector<double> expected(in.size());
      for (std::size_t row = 0; row < tokens * heads; ++row) {
        for (std::size_t i = 0; i < width / 2; ++i) {
          const double angle =
              positions[row / heads] * std::pow(10000.0, -2.0 * static_cast<double>(i) / width);
          const std::size_t first = row * width + (adjacent ? 2 * i : i);
          const std::size_t second = first + (adjacent ? 1 : width / 2);
          expected[first] = in[first] * std::cos(angle) - in[second] * std::sin(angle);
          expected[second] = in[first] * std::sin(angle) + in[second] * std::cos(angle);
        }
      }
      // Angles up to 999 with a relative error of a few 2^-23 (powf, exp2f, the product).
      run.check_close(x, expected, 3e-3, 0);
    }
  });
}

TEST_CASE("cuda: attention in tiles, and of one token") {
  run_case({"attention.cu"}, [](CudaRun& run) {
    const std::size_t tokens = 50, heads = 2, width = 32;
    const float scale = 0.17677669f;
    const std::size_t size = heads * tokens * width;
    const auto q = run.dice.floats(size, -1, 1), k = run.dice.floats(size, -1, 1),
               v = run.dice.floats(size, -1, 1);
    const auto device_q = run.input(q), device_k = run.input(k), device_v = run.input(v);
    // A query against the first `count` keys of its head.
    const auto attend = [&](const float* query, std::size_t head, std::size_t count,
                            std::vector<double>& out) {
      std::vector<double> sum(width);
      double total = 0;
      for (std::size_t t = 0; t < count; ++t) {
        const std::size_t row = (head * tokens + t) * width;
        double dot = 0;
        for (std::size_t d = 0; d < width; ++d) dot += double{query[d]} * scale * k[row + d];
        const double weight = std::exp(dot);
        total += weight;
        for (std::size_t d = 0; d < width; ++d) sum[d] += weight * v[row + d];
      }
      for (const double value : sum) out.push_back(value / total);
    };
    for (const int causal : {0, 1}) {
      const auto out = run.output<float>(size);
      run.launch("attention", {2, heads}, {32}, device_q, device_k, device_v, out, as_int(tokens),
                 scale, causal);
      std::vector<double> expected;
      for (std::size_t row = 0; row < heads * tokens; ++row)
        attend(&q[row * width], row / tokens, causal != 0 ? row % tokens + 1 : tokens, expected);
      run.check_close(out, expected, 1e-5, 1e-5);
    }
    const auto out = run.output<float>(heads * width);
    run.launch_shared("attention_decode", {heads}, {32}, tokens * 4, device_q, device_k, device_v,
                      out, as_int(tokens), scale);
    std::vector<double> expected;
    for (std::size_t head = 0; head < heads; ++head)
      attend(&q[head * width], head, tokens, expected);
    run.check_close(out, expected, 1e-5, 1e-5);
  });
}

TEST_CASE("cuda: products with 8-bit blocks") {
  run_case({"gemv_q8.cu"}, [](CudaRun& run) {
    const std::size_t rows = 10, blocks = 6;
    const auto random_blocks = [&](std::size_t count) {
      std::vector<std::uint8_t> bytes = run.dice.integers<std::uint8_t>(count * 34, 0, 255);
      for (std::size_t b = 0; b < count; ++b)
        put_half(bytes, b * 34, half_bits(run.dice.between(1, 63) * 0x1p-6));
      return bytes;
    };
    const auto weights = random_blocks(rows * blocks), x = random_blocks(blocks);
    const auto y = run.output<float>(rows);
    run.launch("gemv_q8", {3}, {32, 4}, run.input(weights), run.input(x), y, as_int(rows),
               as_int(blocks));
    std::vector<double> expected(rows);
    double largest = 0;
    for (std::size_t i = 0; i < rows * blocks; ++i) {
      std::int32_t dot = 0;
      for (std::size_t j = 0; j < 32; ++j)
        dot += static_cast<std::int8_t>(weights[i * 34 + 2 + j]) *
               static_cast<std::int8_t>(x[i % blocks * 34 + 2 + j]);
      const double part = half_at(weights, i * 34) * half_at(x, i % blocks * 34) * dot;
      expected[i / blocks] += part;
      largest = std::max(largest, std::abs(part));
    }
    // Products of scales have 12 bits, dots 19: roundings of the sums remain.
    run.check_close(y, expected, largest * 48 * 0x1p-23, 0);

    const std::size_t count = 5;
    auto floats = run.dice.floats(count * 32, -3, 3);
    std::fill(floats.begin() + 64, floats.begin() + 96, 0.0f);
    const auto out = run.output<std::uint8_t>(count * 34);
    run.launch("quantize_q8", {count}, {32}, run.input(floats), out);
    std::vector<std::uint8_t> quantised(count * 34);
    for (std::size_t b = 0; b < count; ++b) {
      float maximum = 0;
      for (std::size_t i = 0; i < 32; ++i)
        maximum = std::max(maximum, std::abs(floats[b * 32 + i]));
      const float scale = maximum / 127.0f;
      put_half(quantised, b * 34, half_bits(scale));
      for (std::size_t i = 0; i < 32; ++i) {
        const float rounded = scale == 0 ? 0.0f : std::round(floats[b * 32 + i] / scale);
        quantised[b * 34 + 2 + i] = static_cast<std::uint8_t>(static_cast<std::int8_t>(rounded));
      }
    }
    run.check_equal(out, quantised);
  });
}

TEST_CASE("cuda: products with 4-bit blocks") {
  run_case({"gemv_q4.cu"}, [](CudaRun& run) {
    const std::size_t rows = 5, blocks = 150;
    std::vector<std::uint8_t> weights = run.dice.integers<std::uint8_t>(rows * blocks * 18, 0, 255);
    for (std::size_t b = 0; b < rows * blocks; ++b)
      put_half(weights, b * 18, half_bits(run.dice.between(1, 15) * 0x1p-5));
    const auto x = run.dice.integers<std::int8_t>(blocks * 32, -127, 127);
    std::vector<float> scale_sum;
    for (std::size_t b = 0; b < blocks; ++b) {
      float sum = 0;
      for (std::size_t i = 0; i < 32; ++i) sum += x[b * 32 + i];
      scale_sum.push_back(static_cast<float>(run.dice.between(1, 15)) * 0x1p-5f);
      scale_sum.push_back(sum);
    }
    const auto y = run.output<float>(rows);
    run.launch("gemv_q4", {rows}, {128}, run.input(weights), run.input(scale_sum), run.input(x), y,
               as_int(blocks));
    const auto quant = [&](std::size_t block, std::size_t i) {
      const std::uint8_t byte = weights[block * 18 + 2 + i % 16];
      return (i < 16 ? byte & 15 : byte >> 4) - 8;
    };
    std::vector<float> expected(rows);
    for (std::size_t b = 0; b < rows * blocks; ++b) {
      int dot = 0;
      for (std::size_t i = 0; i < 32; ++i) dot += quant(b, i) * x[b % blocks * 32 + i];
      expected[b / blocks] += static_cast<float>(half_at(weights, b * 18)) *
                              static_cast<float>(dot) * scale_sum[2 * (b % blocks)];
    }
    // Terms are multiples of 2^-10; sums stay below 2^16, where a float's step is 2^-7, and only
    // the few that pass 2^14 are rounded at all.
    run.check_close(y, expected, 0.02, 1e-6);

    const auto out = run.output<std::uint16_t>(rows * blocks * 32);
    run.launch("unpack_q4", {rows * blocks}, {32}, run.input(weights), out);
    std::vector<std::uint16_t> unpacked;
    for (std::size_t b = 0; b < rows * blocks; ++b) {
      for (std::size_t i = 0; i < 32; ++i)
        unpacked.push_back(half_bits(half_at(weights, b * 18) * quant(b, i)));
    }
    run.check_equal(out, unpacked);
  });
}

TEST_CASE("cuda: activations") {
  run_case({"activations.cu"}, [](CudaRun& run) {
    const std::size_t n = 200;
    const auto in = run.dice.floats(n, -8, 8);
    const auto out = run.output<float>(5 * n);
    run.launch("activations", {2}, {128}, run.input(in), out, as_int(n));
    std::vector<double> expected(5 * n);
    for (std::size_t i = 0; i < n; ++i) {
      const double x = in[i];
      expected[i] = 0.5 * x * (1 + std::erf(x * std::sqrt(0.5)));
      expected[n + i] = 0.5 * x * (1 + std::tanh(0.7978845608 * (x + 0.044715 * x * x * x)));
      expected[2 * n + i] = x / (1 + std::exp(-x));
      expected[3 * n + i] = std::max(x, 0.0);
      expected[4 * n + i] = std::log1p(std::exp(x));
    }
    // 1 + erf and 1 + tanh cancel: absolute errors of a few 2^-24 times x.
    run.check_close(out, expected, 4e-6, 5e-6);

    const auto gate = run.dice.floats(4 * n, -8, 8), up = run.dice.floats(4 * n, -2, 2);
    const auto gated = run.output<float>(4 * n);
    run.launch("gated_silu", {2}, {128}, run.input(gate), run.input(up), gated, as_int(n));
    std::vector<double> wanted;
    for (std::size_t i = 0; i < 4 * n; ++i)
      wanted.push_back(gate[i] / (1 + std::exp(-double{gate[i]})) * up[i]);
    run.check_close(gated, wanted, 1e-6, 5e-6);
  });
}

TEST_CASE("cuda: embeddings gathered and their gradients scattered") {
  run_case({"embedding.cu"}, [](CudaRun& run) {
    const std::size_t vocabulary = 30, width = 48, count = 20;
    const auto table = run.dice.integers<float>(vocabulary * width, -100, 100);
    std::vector<std::uint16_t> halves;
    for (const float value : table) halves.push_back(half_bits(value));
    auto tokens = run.dice.integers<std::int32_t>(count, 0, as_int(vocabulary) - 1);
    tokens[3] = -1;
    tokens[4] = as_int(vocabulary);
    const auto positions = run.dice.integers<float>(count * width, -100, 100);
    const auto device_tokens = run.input(tokens);
    const auto out = run.output<float>(count * width);
    run.launch("embedding", {count}, {16}, run.input(halves), device_tokens, run.input(positions),
               out, as_int(width / 2), as_int(vocabulary));
    std::vector<float> expected(positions);
    std::vector<float> gradient(vocabulary * width);
    for (std::size_t i = 0; i < count * width; ++i) {
      if (tokens[i / width] < 0 || tokens[i / width] >= as_int(vocabulary)) continue;
      const std::size_t entry = at(tokens[i / width]) * width + i % width;
      expected[i] += table[entry];
      gradient[entry] += positions[i];
    }
    run.check_equal(out, expected);
    const auto sums = run.input(std::vector<float>(vocabulary * width));
    run.launch("embedding_gradient", {count}, {32}, run.input(positions), device_tokens, sums,
               as_int(width), as_int(vocabulary));
    run.check_equal(sums, gradient);
  });
}

TEST_CASE("cuda: Philox numbers and drawing from weights") {
  struct Philox {
    static std::vector<std::uint32_t> of(std::vector<std::uint32_t> c, std::uint64_t seed) {
      auto k0 = static_cast<std::uint32_t>(seed), k1 = static_cast<std::uint32_t>(seed >> 32);
      for (int round = 0; round < 10; ++round) {
        const std::uint64_t p = std::uint64_t{0xD2511F53u} * c[0];
        const std::uint64_t q = std::uint64_t{0xCD9E8D57u} * c[2];
        c = {static_cast<std::uint32_t>(q >> 32) ^ c[1] ^ k0, static_cast<std::uint32_t>(q),
             static_cast<std::uint32_t>(p >> 32) ^ c[3] ^ k1, static_cast<std::uint32_t>(p)};
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
      }
      return c;
    }
  };
  // Known answers of the authors of Random123 for Philox 4x32-10 and zeros.
  REQUIRE(Philox::of({0, 0, 0, 0}, 0) ==
          std::vector<std::uint32_t>{0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u});
  run_case({"sampling.cu"}, [](CudaRun& run) {
    const std::uint64_t seed = 0x0123456789abcdefu;
    const std::size_t n = 100;
    const auto out = run.output<std::uint32_t>(4 * n);
    run.launch("random_bits", {2}, {64}, out, as_int(n), seed);
    std::vector<std::uint32_t> expected;
    for (std::size_t i = 0; i < n; ++i) {
      const auto four = Philox::of({as_u32(i), 7, 0, 0}, seed);
      expected.insert(expected.end(), four.begin(), four.end());
    }
    run.check_equal(out, expected);

    const std::size_t rows = 12, items = 75;
    const auto weights = run.dice.integers<std::uint32_t>(rows * items, 0, 50);
    const auto drawn = run.output<std::int32_t>(rows);
    run.launch("draw", {rows}, {32}, run.input(weights), as_int(items), seed, drawn);
    std::vector<std::int32_t> wanted;
    for (std::size_t r = 0; r < rows; ++r) {
      std::uint64_t total = 0, before = 0;
      for (std::size_t i = 0; i < items; ++i) total += weights[r * items + i];
      const std::uint64_t target = Philox::of({as_u32(r), 0, 0, 1}, seed)[0] * total >> 32;
      std::size_t found = 0;
      while ((before += weights[r * items + found]) <= target) ++found;
      wanted.push_back(as_int(found));
    }
    run.check_equal(drawn, wanted);
  });
}

TEST_CASE("cuda: paged key cache") {
  struct Shape {
    std::int32_t heads, width, page_tokens, pages_of_sequence;
  };
  run_case({"kv_cache.cu"}, [](CudaRun& run) {
    const std::size_t sequences = 2, heads = 2, width = 40, page = 4, max = 10, pages = 8;
    const Shape shape{as_int(heads), as_int(width), as_int(page), 3};
    const std::vector<std::int32_t> table{5, 2, 7, 0, 3, -1};
    const std::vector<std::int32_t> lengths{9, 6};
    std::vector<std::int32_t> sequence_of, position;
    for (std::size_t s = 0; s < sequences; ++s) {
      for (std::int32_t t = 0; t < lengths[s]; ++t) {
        sequence_of.push_back(as_int(s));
        position.push_back(t);
      }
    }
    const std::size_t tokens = position.size();
    const auto keys = run.dice.integers<float>(tokens * heads * width, -9, 9);
    const auto cache = run.output<std::uint16_t>(pages * page * heads * width);
    const auto device_table = run.input(table);
    run.launch("append", {as_u32(tokens)}, {16, heads}, run.input(keys), run.input(sequence_of),
               run.input(position), device_table, cache, shape);
    const auto queries = run.dice.integers<float>(sequences * heads * width, -9, 9);
    const auto scores = run.input(std::vector<float>(sequences * heads * max));
    run.launch("score", {sequences, heads}, {64}, run.input(queries), run.input(lengths),
               device_table, cache, scores, as_int(max), shape);
    std::vector<float> expected(sequences * heads * max);
    for (std::size_t token = 0; token < tokens; ++token) {
      const std::size_t s = at(sequence_of[token]);
      for (std::size_t h = 0; h < heads; ++h) {
        float& score = expected[(s * heads + h) * max + at(position[token])];
        for (std::size_t i = 0; i < width; ++i)
          score += queries[(s * heads + h) * width + i] * keys[(token * heads + h) * width + i];
      }
    }
    run.check_equal(scores, expected);
  });
}

TEST_CASE("cuda: convolution and pooling of a network") {
  struct Layer {
    std::int32_t channels, height, width, filters, size, stride, padding;
  };
  run_case({"convolution.cu"}, [](CudaRun& run) {
    const std::size_t channels = 3, height = 17, width = 15, filters = 4, size = 3, stride = 2;
    const std::size_t oh = (height + 2 - size) / stride + 1, ow = (width + 2 - size) / stride + 1;
    const auto in = run.dice.integers<float>(channels * height * width, -9, 9);
    const auto weights = run.dice.integers<float>(filters * channels * size * size, -9, 9);
    const auto bias = run.dice.integers<float>(filters, -9, 9);
    const auto out = run.output<float>(filters * oh * ow);
    run.launch("convolution", {1, 3, filters}, {8, 4}, run.input(in), run.input(weights),
               run.input(bias), out, Layer{3, 17, 15, 4, 3, 2, 1});
    std::vector<float> expected(filters * oh * ow);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const std::size_t f = i / (oh * ow), y = i / ow % oh, x = i % ow;
      float sum = bias[f];
      for (std::size_t w = 0; w < channels * size * size; ++w) {
        const int sy = as_int(y * stride + w / size % size) - 1;
        const int sx = as_int(x * stride + w % size) - 1;
        if (sy < 0 || sx < 0 || sy >= as_int(height) || sx >= as_int(width)) continue;
        sum += in[(w / (size * size) * height + at(sy)) * width + at(sx)] *
               weights[f * channels * size * size + w];
      }
      expected[i] = std::max(sum, 0.0f);
    }
    run.check_equal(out, expected);

    const std::size_t side = 12;
    const auto image = run.dice.integers<float>(channels * side * side, -50, 50);
    const auto pooled = run.output<float>(image.size() / 4);
    const auto which = run.output<std::uint8_t>(image.size() / 4);
    run.launch("max_pool", {side / 2, channels}, {side / 2}, run.input(image), pooled, which,
               as_int(side), as_int(side));
    std::vector<float> largest(image.size() / 4);
    std::vector<std::uint8_t> places(image.size() / 4);
    for (std::size_t i = 0; i < largest.size(); ++i) {
      const std::size_t corner = i / (side / 2) * 2 * side + i % (side / 2) * 2;
      for (std::size_t k = 0; k < 4; ++k) {
        const float value = image[corner + k / 2 * side + k % 2];
        if (k != 0 && value <= largest[i]) continue;
        largest[i] = value;
        places[i] = static_cast<std::uint8_t>(k);
      }
    }
    run.check_equal(pooled, largest);
    run.check_equal(which, places);
  });
}
