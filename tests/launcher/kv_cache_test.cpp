// tests/launcher/kv_cache_test.cpp - positions in, at the end of and beyond a cache
#include <catch2/catch.hpp>

#include "ptxgen/kernels.hpp"
#include "ptxgen/kernels/quantization/blocks.hpp"
#include "ptxgen/runtime/device/buffer.hpp"
#include "ptxgen/runtime/device/findings.hpp"
#include "rig.hpp"
#include "support/random_values.hpp"

using namespace ptxgen;

namespace {

constexpr std::size_t kGuard = 64;  // elements on each side of the cache
constexpr float kUntouched = -7;

/// A cache of f32 within guard elements.
struct GuardedCache {
  GuardedCache(const test::Rig& rig, const KvCacheWrite& kernel)
      : spec(kernel),
        count(std::size_t{kernel.heads} * kernel.max_seq * kernel.head_size),
        memory(rig.context, std::vector<float>(count + 2 * kGuard, kUntouched)) {}

  [[nodiscard]] DeviceRange range() const {
    const DeviceRange all(memory);
    return {all.address + 4 * kGuard, 4 * count, ptx::Type::f32};
  }
  // Element i of a head at a position.
  [[nodiscard]] std::size_t index(std::uint32_t head, std::uint32_t position,
                                  std::uint32_t i) const {
    return kGuard + (std::size_t{head} * spec.max_seq + position) * spec.head_size + i;
  }

  KvCacheWrite spec;
  std::size_t count;
  Buffer<f32> memory;
};

}  // namespace

TEST_CASE("rows go to position 0 and the last one; those beyond it are not written") {
  const test::Rig rig;
  const KvCacheWrite kernel{5, 3, 37, 6, ElementType::f32, ElementType::f32};
  const GuardedCache cache(rig, kernel);
  const std::vector<float> values = random_values(5 * 3 * 37, 1);
  const Buffer<f32> x(rig.context, values);
  const std::vector<std::uint32_t> places = {0, 6, 5, 7, ~0u};
  const Buffer<u32> positions(rig.context, places);
  rig.launcher.launch(kernel, {.cache = cache.range(), .x = x, .positions = positions}, rig.stream);
  rig.stream.synchronize();
  std::vector<float> expected(cache.count + 2 * kGuard, kUntouched);
  for (const std::uint32_t row : {0u, 2u}) {
    for (std::uint32_t head = 0; head < 3; ++head) {
      for (std::uint32_t i = 0; i < 37; ++i) {
        expected[cache.index(head, places[row], i)] = values[(row * 3 + head) * 37 + i];
      }
    }
  }
  CHECK(test::read(cache.memory) == expected);
  CHECK(rig.device.findings().empty());
}

TEST_CASE("of rows with one position the last is written, however far they are apart") {
  const test::Rig rig;
  constexpr std::uint32_t kRows = 100;
  const KvCacheWrite kernel{kRows, 1, 2, 4, ElementType::f32, ElementType::f32};
  const GuardedCache cache(rig, kernel);
  std::vector<float> values;
  std::vector<std::uint32_t> places;
  for (std::uint32_t row = 0; row < kRows; ++row) {
    values.insert(values.end(), 2, static_cast<float>(row));
    places.push_back(row < 98 ? row % 3 : 3);
  }
  const Buffer<f32> x(rig.context, values);
  const Buffer<u32> positions(rig.context, places);
  rig.launcher.launch(kernel, {.cache = cache.range(), .x = x, .positions = positions}, rig.stream);
  rig.stream.synchronize();
  const std::vector<float> after = test::read(cache.memory);
  CHECK(after[cache.index(0, 0, 1)] == 96);
  CHECK(after[cache.index(0, 1, 1)] == 97);
  CHECK(after[cache.index(0, 2, 1)] == 95);
  CHECK(after[cache.index(0, 3, 1)] == 99);
  CHECK(rig.device.findings().empty());
}

TEST_CASE("a captured write replays at the positions that are in memory then") {
  const test::Rig rig;
  const KvCacheWrite kernel{1, 2, 8, 4, ElementType::f32, ElementType::f32};
  const GuardedCache cache(rig, kernel);
  Buffer<f32> x(rig.context, 16);
  Buffer<u32> positions(rig.context, 1);
  const KernelRequest request[] = {{"kv_cache_write", {1, 2, 8, 4, 0, 0}}};
  rig.launcher.prepare(request);
  rig.stream.begin_capture();
  rig.launcher.launch(kernel, {.cache = cache.range(), .x = x, .positions = positions}, rig.stream);
  const Graph graph = rig.stream.end_capture();
  for (const std::uint32_t position : {3u, 0u, 2u}) {
    x.write(std::vector<float>(16, static_cast<float>(position + 10)));
    positions.write(std::vector<std::uint32_t>{position});
    graph.launch(rig.stream);
    rig.stream.synchronize();
  }
  const std::vector<float> after = test::read(cache.memory);
  CHECK(after[cache.index(1, 0, 7)] == 10);
  CHECK(after[cache.index(1, 1, 7)] == kUntouched);
  CHECK(after[cache.index(0, 2, 0)] == 12);
  CHECK(after[cache.index(0, 3, 0)] == 13);
}

TEST_CASE("a q8_0 cache has the blocks of the function quantize, beside blocks that stay") {
  const test::Rig rig;
  const KvCacheWrite kernel{1, 2, 96, 3, ElementType::f32, ElementType::q8_0};
  constexpr std::size_t kRowBytes = 3 * 34;
  const std::vector<std::uint8_t> before(2 * 3 * kRowBytes, 0x5a);
  const Buffer<u8> cache(rig.context, before);
  const std::vector<float> values = random_values(2 * 96, 5);
  const Buffer<f32> x(rig.context, values);
  const Buffer<u32> positions(rig.context, std::vector<std::uint32_t>{2});
  rig.launcher.launch(kernel, {.cache = cache, .x = x, .positions = positions}, rig.stream);
  rig.stream.synchronize();
  std::vector<std::uint8_t> expected = before;
  for (std::size_t head = 0; head < 2; ++head) {
    const std::span place(&expected[(head * 3 + 2) * kRowBytes], kRowBytes);
    quantize(ElementType::q8_0, std::span(values).subspan(head * 96, 96),
             std::as_writable_bytes(place));
  }
  CHECK(test::read(cache) == expected);
}

TEST_CASE("heads of a q8_0 cache are whole blocks") {
  const Error error = test::error_of(
      [] { (void)KvCacheWrite{.head_size = 80, .cache = ElementType::q8_0}.geometry(); });
  CHECK(error.kernel == "kv_cache_write");
  CHECK(error.code == "bad-parameter");
  CHECK(error.message ==
        "head_size is 80, but a row of q8_0 is whole blocks of 32 values; pass a multiple of 32, "
        "or another type");
}
