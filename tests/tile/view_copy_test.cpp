// tests/tile/view_copy_test.cpp - strided copies on the emulated device
#include <catch2/catch.hpp>
#include <random>
#include <vector>

#include "ptxgen/runtime.hpp"
#include "refusal.hpp"
#include "support/harness.hpp"

using namespace ptxgen;
using test::refusal;

namespace {

struct Rig {
  Device device = Device::open("emulator");
  Context context{device};
  Stream stream{context};
};

class Random {
 public:
  std::int64_t below(std::int64_t end) {
    return static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(end));
  }
  /// A layout of the sizes: dims in a random order, gaps between and after rows.
  TensorLayout layout(const Dims& sizes, bool gaps) {
    Dims order = sizes;
    for (std::size_t i = 0; i < sizes.size(); ++i) order[i] = static_cast<std::int64_t>(i);
    for (std::size_t i = sizes.size(); i > 1; --i) {
      if (below(3) == 0)
        std::swap(order[i - 1],
                  order[static_cast<std::size_t>(below(static_cast<std::int64_t>(i)))]);
    }
    Dims strides = sizes;
    std::int64_t stride = gaps && below(4) == 0 ? 2 : 1;
    for (std::size_t i = sizes.size(); i-- > 0;) {
      const auto dim = static_cast<std::size_t>(order[i]);
      strides[dim] = stride;
      stride *= sizes[dim];
      if (gaps) stride += below(2) * below(5);
    }
    return TensorLayout::strided(sizes, strides, gaps ? below(7) : 0);
  }

 private:
  std::mt19937_64 engine_{test::seed()};
};

/// Copies a random host view to the device and back, and compares every byte.
template <class T>
void check_round_trip(const Rig& rig, Random& random, bool on_stream) {
  const auto rank = static_cast<std::size_t>(random.below(kMaxRank + 1));
  Dims sizes = Dims::filled(rank, 1);
  for (std::size_t i = 0; i < rank; ++i) sizes[i] = 1 + random.below(5);
  using Host = HostType<T>;
  const TensorLayout from = random.layout(sizes, true);
  const TensorLayout middle = random.layout(sizes, true);
  const TensorLayout to = random.layout(sizes, true);
  const auto memory = [](const TensorLayout& layout) {
    return std::vector<Host>(
        static_cast<std::size_t>(layout.bytes(sizeof(Host)) / sizeof(Host)) + 3, Host{});
  };
  std::vector<Host> source = memory(from);
  for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<Host>(i + 1);
  std::vector<Host> in_device = memory(middle);
  std::vector<Host> result = memory(to);
  Buffer<T> buffer(rig.context, in_device);
  const Stream* const stream = on_stream ? &rig.stream : nullptr;
  const DeviceView<T> device(buffer, middle);
  (void)copy(rig.context, device, HostView<T>(source, from), stream);
  (void)copy(rig.context, HostView<T>(result, to), device, stream);
  rig.stream.synchronize();
  buffer.read(in_device);
  std::vector<Host> device_wanted = memory(middle);
  std::vector<Host> wanted = memory(to);
  const Partition each(TensorLayout::row_major(rank == 0 ? Dims{1} : sizes), ptx::Type::f32,
                       Dims::filled(rank == 0 ? 1 : rank, 1));
  for (std::uint64_t n = 0; n < each.count(); ++n) {
    const Dims index = rank == 0 ? Dims{} : each.index_of(n);
    const std::span<const std::int64_t> at(index.begin(), index.size());
    const Host value = source[static_cast<std::size_t>(from.linear_index(at))];
    device_wanted[static_cast<std::size_t>(middle.linear_index(at))] = value;
    wanted[static_cast<std::size_t>(to.linear_index(at))] = value;
  }
  INFO(from.text() << " to " << middle.text() << " to " << to.text());
  REQUIRE(in_device == device_wanted);
  REQUIRE(result == wanted);
}

}  // namespace

TEST_CASE("falsification 49: strided copies to the device and back, synchronous and queued") {
  const Rig rig;
  Random random;
  for (int n = 0; n < test::count(400, 4000); ++n) {
    check_round_trip<f32>(rig, random, n % 2 == 0);
    check_round_trip<u8>(rig, random, n % 2 == 1);
    check_round_trip<f64>(rig, random, n % 3 == 0);
  }
}

TEST_CASE("rows go by one rectangle, planes by one volume") {
  const Rig rig;
  std::vector<float> memory(4 * 6 * 10);
  const auto calls = [&](const TensorLayout& host, const TensorLayout& device) {
    const Buffer<f32> buffer(rig.context, memory.size());
    return copy(rig.context, DeviceView<f32>(buffer, device), HostView<f32>(memory, host));
  };
  const TensorLayout dense = TensorLayout::row_major({4, 6, 8});
  CHECK(calls(dense, dense) == 1);
  const TensorLayout pitched = TensorLayout::strided({4, 6, 8}, {60, 10, 1});
  CHECK(calls(pitched, dense) == 1);
  CHECK(calls(dense, pitched) == 1);
  // Planes that are no multiple of the rows: a rectangle for each.
  CHECK(calls(TensorLayout::strided({3, 6, 8}, {65, 10, 1}), TensorLayout::row_major({3, 6, 8})) ==
        3);
  // A transposition has elements as rows.
  CHECK(calls(TensorLayout::row_major({4, 6}), TensorLayout::column_major({4, 6})) == 6);
  // Repeated elements, and rows that overlap in the source, one by one.
  const TensorLayout window = TensorLayout::strided({5, 4}, {1, 1});
  CHECK(calls(window, TensorLayout::row_major({5, 4})) == 5);
}

TEST_CASE("copies that are refused") {
  const Rig rig;
  std::vector<float> memory(100);
  const Buffer<f32> buffer(rig.context, memory.size());
  const auto refused = [&](const TensorLayout& to, const TensorLayout& from) {
    return refusal(
        [&] { (void)copy(rig.context, DeviceView<f32>(buffer, to), HostView<f32>(memory, from)); });
  };
  CHECK(refused(TensorLayout::row_major({4, 5}), TensorLayout::row_major({5, 4})) ==
        "copy-size: the copy has sizes [5, 4] and [4, 5]; rule: both views have the same sizes; "
        "cure: slice the larger one");
  CHECK(
      refused(TensorLayout::strided({4, 4}, {1, 1}), TensorLayout::row_major({4, 4})) ==
      "view: view [4, 4]:[1, 1]+0: a copy writes through it; rule: no store goes through a view in "
      "which two indices name one element; cure: write through a view whose strides keep its "
      "elements apart");
}
