// tests/builder/vector_loop_test.cpp - for_each_vector at every length and alignment
#include <algorithm>
#include <catch2/catch.hpp>
#include <type_traits>

#include "math_accuracy.hpp"
#include "ptxgen/runtime/device/findings.hpp"

using namespace ptxgen;
using test::MathRig;

namespace {

// y[i] = x[i]; widths[i] is the number of elements of the access that moved it.
template <class T>
auto copy_kernel() {
  return build_kernel("copy_vector", "sm_90", {"y", "x", "widths", "n"},
                      [](KernelBuilder& k, Ptr<T> y, Ptr<T> x, Ptr<u32> widths, Value<u32> n) {
                        for_each_vector(
                            k, n,
                            [&](auto at) {
                              constexpr unsigned kSize = std::decay_t<decltype(at)>::kSize;
                              at.store(y, at.load(x));
                              const Ptr<u32> first = widths + at.first();
                              for (unsigned i = 0; i < kSize; ++i) first[i] = kSize;
                            },
                            x, y);
                      });
}

// `n` elements from `offset` on.
template <class T>
void check_copy(const MathRig& rig, std::uint32_t n, std::uint32_t offset, std::uint32_t wide) {
  INFO(n << " elements, " << offset << " after an aligned address");
  std::vector<HostType<T>> x(n + offset);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<HostType<T>>(i * 7 + 1);
  const Buffer<T> in(rig.context, x);
  Buffer<T> out(rig.context, x.size());
  out.fill_bytes(0xff);
  const Buffer<u32> widths(rig.context, n);
  const auto from = [&](const Buffer<T>& buffer) {
    return DeviceSpan<T>(buffer).subspan(offset, n);
  };
  rig.launcher.launch(copy_kernel<T>(), {.grid = {2}, .block = {32}}, rig.stream, from(out),
                      from(in), widths, n);
  rig.stream.synchronize();
  std::vector<HostType<T>> y(x.size());
  out.read(y);
  CHECK(std::equal(y.begin() + offset, y.end(), x.begin() + offset));
  std::vector<std::uint32_t> by(n);
  widths.read(by);
  const std::uint32_t in_vectors = offset == 0 ? n / wide * wide : 0;
  for (std::uint32_t i = 0; i < n; ++i) CHECK(by[i] == (i < in_vectors ? wide : 1));
}

template <class T>
void check_copies(std::uint32_t wide) {
  const MathRig rig;
  for (const std::uint32_t n : {1u, 3u, 4u, 5u, 64u, 255u, 1003u}) {
    for (const std::uint32_t offset : {0u, 1u}) check_copy<T>(rig, n, offset, wide);
  }
  CHECK(rig.device.findings().empty());
}

}  // namespace

TEST_CASE("vector loops access each element once, in vectors where all arrays are aligned") {
  check_copies<f32>(4);
  check_copies<u64>(2);
  check_copies<f16>(4);
}
