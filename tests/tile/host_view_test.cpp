// tests/tile/host_view_test.cpp - views of host and device memory
#include <catch2/catch.hpp>
#include <numeric>
#include <vector>

#include "ptxgen/kernels/view.hpp"
#include "refusal.hpp"
#include "runtime/count_allocations.hpp"
#include "support/harness.hpp"

using namespace ptxgen;
using test::refusal;

namespace {

std::vector<float> counting(std::size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 0.0f);
  return values;
}

}  // namespace

TEST_CASE("elements of a host view") {
  std::vector<float> memory = counting(50);
  const HostView<f32> view(memory, TensorLayout::strided({3, 4}, {10, 2}, 5));
  CHECK(view(0, 0) == 5);
  CHECK(view(2, 3) == 31);
  view(1, 1) = -1;
  CHECK(memory[17] == -1);
  CHECK(view.transpose()(1, 1) == -1);
  CHECK(view.slice({1, 1}, {2, 2})(0, 0) == -1);
  const HostView<const f32> reading = view;
  CHECK(reading(1, 1) == -1);
  const HostView<const f32> repeated = view.slice_dim(0, 1, 1).broadcast({7, 4});
  CHECK(repeated(6, 1) == -1);
  const HostView<f32> line(memory, TensorLayout::row_major({50}));
  CHECK(line.reshape({5, 10})(1, 7) == -1);
  const TileInfo tile = view.partition({2, 4}).tile({1, 0});
  CHECK(tile.is_edge);
  CHECK(view.with(tile.view)(0, 3) == 31);
}

TEST_CASE("host views check memory and every access") {
  std::vector<float> memory = counting(11);
  CHECK(
      refusal([&] {
        HostView<f32>(memory, TensorLayout::row_major({3, 4}));
      }) ==
      "out-of-bounds: view [3, 4]:[4, 1]+0 of elements of 4 bytes ends at byte 48, the memory has "
      "44; rule: a view is within its memory; cure: make sizes, strides or offset smaller");
  const HostView<f32> view(memory, TensorLayout::strided({3, 4}, {3, 1}));
  CHECK(
      refusal([&] { (void)view(3, 0); }) ==
      "out-of-bounds: view [3, 4]:[3, 1]+0: index 3 in dim 0 of size 3; rule: an index is at least "
      "0 and below the size; cure: check the bounds before the access");
  CHECK(refusal([&] { (void)view(0); }).find("an index of 1 number") != std::string::npos);
  const TensorLayout repeated = TensorLayout::row_major({1}).broadcast({4});
  CHECK(refusal([&] { HostView<f32>(memory, repeated); }) ==
        "view: view [4]:[0]+0 read-only of elements that may be written; rule: a broadcast view is "
        "read-only; cure: make it a view of const elements");
  CHECK(HostView<const f32>(memory, repeated)(3) == 0);
  CHECK(refusal([&] {
          HostView<f32>(memory, TensorLayout::row_major({kDynamicDim}));
        }).find("bind() the sizes") != std::string::npos);
}

TEST_CASE("falsification 44: views and tiles allocate nothing") {
  if (!test::kCountsAllocations) return test::skip("clang's TSan has its own operator new");
  std::vector<float> memory = counting(64);
  const HostView<f32> view(memory, TensorLayout::row_major({8, 8}));
  const Partition parts = view.partition({4, 4});
  const std::uint64_t before = test::allocations();
  const HostView<f32> part = view.slice({1, 2}, {4, 6}).transpose();
  const HostView<const f32> repeated = part.slice_dim(0, 0, 1).broadcast({5, 4});
  part(3, 2) = repeated(4, 1);
  const HostView<f32> same = view.reshape({4, 16});
  const TileInfo tile = parts.tile({1, 0});
  const HostView<f32> of_tile = view.with(tile.view);
  const Dims index = parts.index_of(3, {Traversal::Kind::Grouped, 2});
  const std::uint64_t allocated = test::allocations() - before;
  CHECK(allocated == 0);
  CHECK(same(0, 0) == 0);
  CHECK(of_tile(0, 1) == 33);
  CHECK(index == Dims{1, 1});
}

TEST_CASE("device views pass the address of their first element") {
  const DeviceSpan<f16> memory{{0x1000}, 100};
  const DeviceView<f16> view(memory, TensorLayout::strided({3, 4}, {24, 1}, 5));
  CHECK(view.address().value == 0x100a);
  CHECK(view.slice_dim(0, 1, 2).address().value == 0x103a);
  CHECK(
      refusal([&] { (void)view.contiguous(); }) ==
      "view: view [3, 4]:[24, 1]+5 as contiguous memory; rule: this operand has no strides; cure: "
      "copy the view into contiguous memory first");
  const DeviceSpan<f16> row = view.slice_dim(0, 2, 1).contiguous();
  CHECK(row.address.value == 0x106a);
  CHECK(row.count == 4);
  CHECK(refusal([&] {
          DeviceView<f16>(memory, TensorLayout::row_major({10, 11}));
        }).find("ends at byte 220, the memory has 200") != std::string::npos);
}
