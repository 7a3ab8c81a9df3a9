// tests/launcher/rope_kv_write_test.cpp - one launch against norm, rotation and cache write apart
#include <catch2/catch.hpp>
#include <cstring>

#include "ptxgen/kernels.hpp"
#include "ptxgen/kernels/host_values.hpp"
#include "ptxgen/runtime/device/buffer.hpp"
#include "ptxgen/runtime/device/findings.hpp"
#include "rig.hpp"
#include "support/random_values.hpp"

using namespace ptxgen;

namespace {

constexpr float kTheta = 50000.0f;
constexpr float kEps = 1e-5f;
// Twice the same, beyond the cache, the first and the last one.
const std::vector<std::uint32_t> kPositions = {2, 7, 2, 0, 4, ~0u};

std::vector<std::uint8_t> random_elements(ElementType type, std::size_t count, std::uint32_t seed) {
  const std::vector<float> random = random_values(count, seed);
  const std::vector<std::byte> elements =
      to_elements(type, std::vector<double>(random.begin(), random.end()));
  std::vector<std::uint8_t> bytes(elements.size());
  std::memcpy(bytes.data(), elements.data(), bytes.size());
  return bytes;
}

/// Bytes of any type.
struct Memory {
  Memory(const test::Rig& rig, const std::vector<std::uint8_t>& bytes)
      : buffer(rig.context, bytes) {}
  Memory(const test::Rig& rig, ElementType type, std::uint64_t count, std::uint32_t seed)
      : Memory(rig, random_elements(type, static_cast<std::size_t>(count), seed)) {}

  [[nodiscard]] DeviceRange all() const { return part(0, buffer.size()); }
  [[nodiscard]] DeviceRange part(std::uint64_t first, std::uint64_t bytes) const {
    return {DeviceRange(buffer).address + first, bytes, ptx::Type::none};
  }
  [[nodiscard]] std::vector<std::uint8_t> read() const { return test::read(buffer); }

  Buffer<u8> buffer;
};

/// The operands of a launch, random by their seeds.
struct Inputs {
  Inputs(const test::Rig& rig, const RopeKvWrite& kernel)
      : spec(kernel),
        head(bytes(spec.type) * spec.head_size),
        cache_bytes(
            bytes(spec.cache, std::uint64_t{spec.kv_heads} * spec.max_seq * spec.head_size)),
        q(rig, spec.type, elements(spec.heads), 1),
        k(rig, spec.type, elements(spec.kv_heads), 2),
        v(rig, spec.type, elements(spec.kv_heads), 3),
        q_weight(rig, ElementType::f32, spec.head_size, 4),
        k_weight(rig, ElementType::f32, spec.head_size, 5),
        factors(rig, to_bytes(std::vector<float>(spec.head_size / 2, 3.0f))),
        k_cache(rig, cache(6)),
        v_cache(rig, cache(7)),
        positions(rig.context,
                  std::vector<std::uint32_t>(kPositions.begin(), kPositions.begin() + spec.rows)) {}

  [[nodiscard]] std::uint64_t elements(std::uint32_t heads) const {
    return std::uint64_t{spec.rows} * heads * spec.head_size;
  }
  [[nodiscard]] static std::vector<std::uint8_t> to_bytes(const std::vector<float>& values) {
    std::vector<std::uint8_t> all(values.size() * 4);
    std::memcpy(all.data(), values.data(), all.size());
    return all;
  }
  [[nodiscard]] std::vector<std::uint8_t> cache(std::uint8_t filled_with) const {
    const std::uint64_t sequences = spec.shared_cache ? 1 : spec.rows;
    return std::vector<std::uint8_t>(static_cast<std::size_t>(sequences * cache_bytes),
                                     filled_with);
  }

  RopeKvWrite spec;
  std::uint64_t head, cache_bytes;
  Memory q, k, v, q_weight, k_weight, factors, k_cache, v_cache;
  Buffer<u32> positions;
};

/// What the launches left.
struct Results {
  std::vector<std::uint8_t> out, k_cache, v_cache;
  friend bool operator==(const Results&, const Results&) = default;
};

Results fused(const test::Rig& rig, const RopeKvWrite& spec) {
  const Inputs in(rig, spec);
  RopeKvWrite::Operands operands{.out = in.q.all(),
                                 .k_cache = in.k_cache.all(),
                                 .v_cache = in.v_cache.all(),
                                 .q = in.q.all(),
                                 .k = in.k.all(),
                                 .v = in.v.all(),
                                 .positions = in.positions,
                                 .theta = kTheta};
  if (spec.qk_norm) {
    operands.q_weight = in.q_weight.all();
    operands.k_weight = in.k_weight.all();
    operands.eps = kEps;
  }
  if (spec.factors) operands.factors = in.factors.all();
  const std::vector<std::uint8_t> k_before = in.k.read();
  rig.launcher.launch(spec, operands, rig.stream);
  rig.stream.synchronize();
  CHECK(in.k.read() == k_before);
  return {in.q.read(), in.k_cache.read(), in.v_cache.read()};
}

template <class K>
void rotate(const test::Rig& rig, const Inputs& in, std::uint32_t heads, const Memory& x) {
  K kernel{.rows = in.spec.rows, .heads = heads, .head_size = in.spec.head_size};
  kernel.type = in.spec.type;
  kernel.indirect = true;
  kernel.precise = in.spec.precise;
  kernel.factors = in.spec.factors;
  typename K::Operands operands{
      .y = x.all(), .x = x.all(), .positions = in.positions, .theta = kTheta};
  if (kernel.factors) operands.factors = in.factors.all();
  rig.launcher.launch(kernel, operands, rig.stream);
}

void prepare_heads(const test::Rig& rig, const Inputs& in, std::uint32_t heads, const Memory& x,
                   const Memory& weight) {
  const RopeKvWrite& spec = in.spec;
  if (spec.qk_norm) {
    const PerHeadRmsNorm norm{spec.rows, heads, spec.head_size, spec.type, spec.precise};
    rig.launcher.launch(norm, {.y = x.all(), .x = x.all(), .weight = weight.all(), .eps = kEps},
                        rig.stream);
  }
  if (spec.pairs == RopePairs::Interleaved) {
    rotate<RopeInterleaved>(rig, in, heads, x);
  } else {
    rotate<RopeNeox>(rig, in, heads, x);
  }
}

void write(const test::Rig& rig, const Inputs& in, const Memory& x, const Memory& cache) {
  const RopeKvWrite& spec = in.spec;
  KvCacheWrite kernel{spec.rows,    spec.kv_heads, spec.head_size,
                      spec.max_seq, spec.type,     spec.cache};
  if (spec.shared_cache) {
    rig.launcher.launch(kernel, {.cache = cache.all(), .x = x.all(), .positions = in.positions},
                        rig.stream);
    return;
  }
  kernel.rows = 1;
  const std::uint64_t row = spec.kv_heads * in.head;
  const DeviceRange positions(in.positions);
  for (std::uint32_t i = 0; i < spec.rows; ++i) {
    rig.launcher.launch(kernel,
                        {.cache = cache.part(i * in.cache_bytes, in.cache_bytes),
                         .x = x.part(i * row, row),
                         .positions = {positions.address + 4 * i, 4, ptx::Type::u32}},
                        rig.stream);
  }
}

Results apart(const test::Rig& rig, const RopeKvWrite& spec) {
  const Inputs in(rig, spec);
  prepare_heads(rig, in, spec.heads, in.q, in.q_weight);
  prepare_heads(rig, in, spec.kv_heads, in.k, in.k_weight);
  write(rig, in, in.k, in.k_cache);
  write(rig, in, in.v, in.v_cache);
  rig.stream.synchronize();
  return {in.q.read(), in.k_cache.read(), in.v_cache.read()};
}

void check_same(const test::Rig& rig, const RopeKvWrite& spec) {
  INFO(shape_text(kDescription<RopeKvWrite>, &spec));
  CHECK(fused(rig, spec) == apart(rig, spec));
}

}  // namespace

TEST_CASE("one launch has the bits of norm, rotation and cache write apart, with every option") {
  const test::Rig rig;
  constexpr ElementType kTypes[] = {ElementType::f32, ElementType::f16, ElementType::bf16};
  constexpr ElementType kCaches[] = {ElementType::f32, ElementType::f16, ElementType::bf16,
                                     ElementType::q8_0};
  std::uint32_t types = 0;
  for (const ElementType type : kTypes) {
    for (const ElementType cache : kCaches) {
      ++types;
      // A third of the options with each pair of types, all of them with four pairs.
      for (std::uint32_t options = types % 3; options < 32; options += 3) {
        RopeKvWrite spec{.rows = 6, .heads = 3, .kv_heads = 2, .head_size = 96, .max_seq = 5};
        spec.type = type;
        spec.cache = cache;
        spec.pairs = (options & 1) != 0 ? RopePairs::Halves : RopePairs::Interleaved;
        spec.qk_norm = (options & 2) != 0;
        spec.factors = (options & 4) != 0;
        spec.shared_cache = (options & 8) != 0;
        spec.precise = (options & 16) != 0;
        check_same(rig, spec);
      }
    }
  }
  CHECK(rig.device.findings().empty());
}

TEST_CASE("one launch has those bits at other head sizes") {
  const test::Rig rig;
  for (const std::uint32_t size : {2u, 30u, 34u, 64u, 126u, 256u, 2048u}) {
    RopeKvWrite spec{.rows = 2, .heads = 2, .kv_heads = 1, .head_size = size, .max_seq = 3};
    spec.qk_norm = true;
    spec.pairs = RopePairs::Halves;
    check_same(rig, spec);
    spec.pairs = RopePairs::Interleaved;
    spec.type = ElementType::bf16;
    spec.precise = true;
    if (size % 32 == 0) spec.cache = ElementType::q8_0;
    check_same(rig, spec);
  }
  CHECK(rig.device.findings().empty());
}

TEST_CASE("a captured launch replays at the positions that are in memory then") {
  const test::Rig rig;
  RopeKvWrite spec{.rows = 1, .heads = 2, .kv_heads = 1, .head_size = 4, .max_seq = 4};
  spec.cache = ElementType::f32;
  const Buffer<f32> q(rig.context, std::vector<float>(8, 1.0f));
  const Buffer<f32> out(rig.context, 8);
  const Buffer<f32> kv(rig.context, std::vector<float>(8, 1.0f));
  const Buffer<f32> k_cache(rig.context, std::vector<float>(16, -7.0f));
  const Buffer<f32> v_cache(rig.context, std::vector<float>(16, -7.0f));
  Buffer<u32> positions(rig.context, 1);
  const DeviceRange both(kv);
  const RopeKvWrite::Operands operands{.out = out,
                                       .k_cache = k_cache,
                                       .v_cache = v_cache,
                                       .q = q,
                                       .k = {both.address, 16, ptx::Type::f32},
                                       .v = {both.address + 16, 16, ptx::Type::f32},
                                       .positions = positions};
  const KernelRequest request[] = {{"rope_kv_write", {1, 2, 1, 4, 4, 0, 0, 0, 0, 0, 0, 0}}};
  rig.launcher.prepare(request);
  rig.stream.begin_capture();
  rig.launcher.launch(spec, operands, rig.stream);
  const Graph graph = rig.stream.end_capture();
  for (const std::uint32_t position : {3u, 0u, 4u}) {
    positions.write(std::vector<std::uint32_t>{position});
    graph.launch(rig.stream);
    rig.stream.synchronize();
  }
  const std::vector<float> values = test::read(v_cache);
  CHECK(values[0] == 1);
  CHECK(values[4] == -7);
  CHECK(values[15] == 1);
  const std::vector<float> keys = test::read(k_cache);
  CHECK(keys[1] == 1);
  CHECK(keys[12] != 1);
  CHECK(rig.device.findings().empty());
}

TEST_CASE("q, k and v are slices of one buffer from their products to the attention") {
  const test::Rig rig;
  constexpr std::uint32_t kWidth = 48, kHeads = 4, kKvHeads = 2, kHeadSize = 32, kSeq = 3;
  const GemvGroup product{.k = kWidth,
                          .n0 = kHeads * kHeadSize,
                          .n1 = kKvHeads * kHeadSize,
                          .n2 = kKvHeads * kHeadSize,
                          .w0 = ElementType::f32,
                          .w1 = ElementType::f32,
                          .w2 = ElementType::f32};
  const Buffer<f32> x(rig.context, random_values(kWidth, 11));
  const Buffer<f32> weights(rig.context, random_values(kWidth * 8 * kHeadSize, 12));
  const Buffer<u32> positions(rig.context, std::vector<std::uint32_t>{0});
  const Buffer<u32> lengths(rig.context, std::vector<std::uint32_t>{1});
  RopeKvWrite rotation{
      .heads = kHeads, .kv_heads = kKvHeads, .head_size = kHeadSize, .max_seq = kSeq};
  rotation.cache = ElementType::f32;
  const AttentionDecode attention{
      .kv_heads = kKvHeads, .group = 2, .head_size = kHeadSize, .max_seq = kSeq};
  const DeviceRange w(weights);
  const auto matrix = [&](std::uint32_t first, std::uint32_t heads) {
    const std::uint64_t row = 4 * kWidth;
    return DeviceRange{w.address + first * kHeadSize * row, heads * kHeadSize * row,
                       ptx::Type::f32};
  };
  // With `apart` elements between q, k and v.
  const auto attend = [&](std::uint64_t apart) {
    const Buffer<f32> qkv(rig.context, std::vector<float>(8 * kHeadSize + 2 * apart, -7.0f));
    const Buffer<f32> k_cache(rig.context, std::vector<float>(kKvHeads * kSeq * kHeadSize, 0.0f));
    const Buffer<f32> v_cache(rig.context, std::vector<float>(kKvHeads * kSeq * kHeadSize, 0.0f));
    const Buffer<f32> out(rig.context, kHeads * kHeadSize);
    const DeviceRange all(qkv);
    const auto slice = [&](std::uint32_t head, std::uint64_t gaps, std::uint32_t heads) {
      return DeviceRange{all.address + 4 * (head * kHeadSize + gaps * apart), 4 * heads * kHeadSize,
                         ptx::Type::f32};
    };
    const DeviceRange q = slice(0, 0, kHeads);
    const DeviceRange k = slice(kHeads, 1, kKvHeads);
    const DeviceRange v = slice(kHeads + kKvHeads, 2, kKvHeads);
    rig.launcher.launch(product,
                        {.y0 = q,
                         .y1 = k,
                         .y2 = v,
                         .w0 = matrix(0, kHeads),
                         .w1 = matrix(kHeads, kKvHeads),
                         .w2 = matrix(kHeads + kKvHeads, kKvHeads),
                         .x = x},
                        rig.stream);
    rig.launcher.launch(rotation,
                        {.out = q,
                         .k_cache = k_cache,
                         .v_cache = v_cache,
                         .q = q,
                         .k = k,
                         .v = v,
                         .positions = positions},
                        rig.stream);
    rig.launcher.launch(attention,
                        {.out = out, .q = q, .k = k_cache, .v = v_cache, .lengths = lengths},
                        rig.stream);
    rig.stream.synchronize();
    return std::pair(test::read(out), test::read(qkv));
  };
  const auto [together, buffer] = attend(0);
  const auto [apart, padded] = attend(64);
  CHECK(together == apart);
  // Attention over one position gives its v.
  for (std::uint32_t i = 0; i < kHeads * kHeadSize; ++i) {
    const std::uint32_t of_v = i / kHeadSize / 2 * kHeadSize + i % kHeadSize;
    CHECK(together[i] == Approx(buffer[(kHeads + kKvHeads) * kHeadSize + of_v]));
  }
  CHECK(rig.device.findings().empty());
}

TEST_CASE("what rope_kv_write refuses") {
  RopeKvWrite spec{.head_size = 80, .cache = ElementType::q8_0};
  const std::string expected =
      "head_size is 80, but a row of q8_0 is whole blocks of 32 values; pass a multiple of 32, or "
      "another type";
  const Error geometry = test::error_of([&] { (void)spec.geometry(); });
  CHECK(geometry.kernel == "rope_kv_write");
  CHECK(geometry.message == expected);
  const Error build = test::error_of([&] { (void)spec.build(ptx::target("sm_90")); });
  CHECK(build.message == expected);
  spec.head_size = 64;
  const Error eps = test::error_of(
      [&] { Describe<RopeKvWrite>::check(spec, RopeKvWrite::Operands{.eps = 0.5f}); });
  CHECK(eps.code == "arguments");
  CHECK(eps.message ==
        "eps is 0.5; without qk_norm it is not used: set RopeKvWrite::qk_norm, or leave it 0");
  spec.head_size = 63;
  CHECK(test::error_of([&] { (void)spec.build(ptx::target("sm_90")); }).code == "bad-parameter");
}
