// tests/launcher/attention_launch_test.cpp - decode attention in graphs, and its refusals
#include <catch2/catch.hpp>
#include <cmath>

#include "ptxgen/kernels.hpp"
#include "ptxgen/runtime/device/buffer.hpp"
#include "rig.hpp"

using namespace ptxgen;

namespace {

/// Keys of 0, so that all positions weigh the same; the value of position i is i.
struct Means {
  Means(const Context& context, const AttentionDecode& of)
      : spec(of),
        q(context, std::vector<float>(of.rows * of.heads() * of.head_size, 1.0f)),
        k(context, std::vector<float>(of.cache_values(), 0.0f)),
        v(context, positions()),
        lengths(context, of.rows),
        out(context, q.size()) {}

  [[nodiscard]] std::vector<float> positions() const {
    std::vector<float> values(static_cast<std::size_t>(spec.cache_values()));
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<float>(i / spec.head_size % spec.max_seq);
    }
    return values;
  }
  [[nodiscard]] AttentionDecode::Operands operands() const {
    return {.out = out, .q = q, .k = k, .v = v, .lengths = lengths};
  }
  void check(const std::vector<std::uint32_t>& of) const {
    const std::vector<float> means = test::read(out);
    for (std::size_t i = 0; i < means.size(); ++i) {
      const std::uint32_t length = of[i / (spec.heads() * spec.head_size)];
      const float mean = length == 0 ? 0 : static_cast<float>(length - 1) / 2;
      CHECK(means[i] == Approx(mean).epsilon(1e-5));
    }
  }

  AttentionDecode spec;
  Buffer<f32> q, k, v;
  Buffer<u32> lengths;
  Buffer<f32> out;
};

}  // namespace

TEST_CASE("a captured attention replays with the lengths that are in memory then") {
  const test::Rig rig;
  AttentionDecode spec;
  spec.rows = 2;
  spec.kv_heads = 1;
  spec.group = 2;
  spec.head_size = 32;
  spec.max_seq = 300;
  spec.chunk = 64;
  Means means(rig.context, spec);
  means.lengths.write(std::vector<std::uint32_t>{300, 300});
  rig.launcher.launch(spec, means.operands(), rig.stream);
  rig.stream.begin_capture();
  rig.launcher.launch(spec, means.operands(), rig.stream);
  const Graph graph = rig.stream.end_capture();
  const std::vector<std::uint32_t> all[] = {{1, 300}, {65, 64}, {0, 7}, {299, 0}, {300, 300}};
  for (const std::vector<std::uint32_t>& lengths : all) {
    rig.stream.synchronize();
    means.lengths.write(lengths);
    means.out.fill_bytes(0xff, &rig.stream);
    graph.launch(rig.stream);
    rig.stream.synchronize();
    means.check(lengths);
  }
}

TEST_CASE(
    "attention refuses a cap that it would ignore, or that is not positive, and short caches") {
  const test::Rig rig;
  AttentionDecode spec;
  spec.kv_heads = 1;
  spec.group = 1;
  spec.head_size = 32;
  spec.max_seq = 10;
  Means means(rig.context, spec);
  AttentionDecode::Operands operands = means.operands();
  operands.cap = 2;
  const auto error = [&] {
    return test::error_of([&] { rig.launcher.launch(spec, operands, rig.stream); });
  };
  CHECK(error().message ==
        "cap is 2; without softcap it is not used: set AttentionDecode::softcap, or leave it 0");
  spec.softcap = true;
  operands.cap = 0;
  CHECK(error().message == "cap is 0; with softcap it is positive");
  operands.cap = 2;
  spec.max_seq = 11;
  CHECK(error().code == "buffer-size");
  spec.max_seq = 10;
  operands.k.address += 4;
  operands.k.bytes -= 4;
  spec.max_seq = 9;
  CHECK(error().code == "misaligned");
}
