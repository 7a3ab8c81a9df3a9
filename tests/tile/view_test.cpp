// tests/tile/view_test.cpp - what views accept and refuse, by text
#include <catch2/catch.hpp>
#include <limits>

#include "ptxgen/tile/view.hpp"
#include "refusal.hpp"

using namespace ptxgen;
using test::refusal;

namespace {

constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kAny = kDynamicDim;

TensorLayout strided(const Dims& sizes, const Dims& strides, std::int64_t offset = 0) {
  return TensorLayout::strided(sizes, strides, offset);
}
std::string refused(const Dims& sizes, const Dims& strides, std::int64_t offset = 0) {
  return refusal([&] { (void)strided(sizes, strides, offset); });
}

}  // namespace

TEST_CASE("views that are legal") {
  CHECK(TensorLayout().text() == "[]:[]+0");
  CHECK(TensorLayout().count() == 1);
  CHECK(strided({}, {}, 7).text() == "[]:[]+7");
  CHECK(strided({3}, {2}).text() == "[3]:[2]+0");
  CHECK(strided({kAny, 4}, {kAny, 1}).text() == "[?, 4]:[?, 1]+0");
  // Strides that overlap are legal; what follows from it is a matter of stores.
  CHECK(strided({4, 4}, {1, 1}).overlap() == Overlap::Some);
  CHECK(strided({2, 2, 2, 2, 2}, {16, 8, 4, 2, 1}).rank() == 5);
  CHECK(strided({1}, {kLargest}).count() == 1);
  CHECK(strided({2}, {kLargest - 1}, 1).extent() == static_cast<std::uint64_t>(kLargest));
}

TEST_CASE("views that are refused") {
  CHECK(
      refused({4, 4}, {1}) ==
      "view: view [4, 4]:[1]+0: 2 sizes and 1 stride; rule: each dim has a size and a stride, and "
      "a view of rank 0 has neither; cure: give one stride for each size");
  CHECK(refused({}, {1}) ==
        "view: view []:[1]+0: 0 sizes and 1 stride; rule: each dim has a size and a stride, and a "
        "view of rank 0 has neither; cure: give one stride for each size");
  CHECK(
      refused({4, 0}, {1, 1}) ==
      "view: view [4, 0]:[1, 1]+0: dim 1 has size 0; rule: sizes are 1 or more; cure: make a size "
      "dynamic that may be 0 when the kernel runs");
  CHECK(refused({-4}, {1}) ==
        "view: view [-4]:[1]+0: dim 0 has size -4; rule: sizes are 1 or more; cure: make a size "
        "dynamic that may be 0 when the kernel runs");
  CHECK(refused({4}, {0}) ==
        "view: view [4]:[0]+0: dim 0 has stride 0; rule: strides are 1 or more; cure: repeat "
        "elements with broadcast(), which gives a read-only view");
  CHECK(refused({4, 4}, {4, -1}) ==
        "view: view [4, 4]:[4, -1]+0: dim 1 has stride -1; rule: strides are 1 or more; cure: "
        "strides count forwards; reverse the index where it is used");
  CHECK(
      refused({4}, {1}, -2) ==
      "view: view [4]:[1]+-2: offset -2; rule: offsets are 0 or more; cure: move the base pointer "
      "instead");
  CHECK(
      refusal([] { (void)Dims{1, 1, 1, 1, 1, 1}; }) ==
      "view: a view of rank 6; rule: a view has at most 5 dims; cure: merge dims that follow each "
      "other, or process one of them in a loop");
}

TEST_CASE("positions beyond 2^63 - 1 are refused") {
  const std::string reach = "reach beyond position 2^63 - 1 in dim ";
  CHECK(refused({3}, {kLargest / 2 + 1}) ==
        "view-overflow: view [3]:[4611686018427387904]+0: its elements " + reach +
            "0; rule: positions of elements fit 63 bits; cure: make sizes or strides smaller");
  CHECK(refused({2, 2}, {kLargest / 2, kLargest / 2 + 2}).find(reach + "1") != std::string::npos);
  CHECK(refused({2}, {kLargest}, 1).find(reach + "0") != std::string::npos);
  CHECK(refused({kAny, 2}, {1, kLargest}, 1).find(reach + "1") != std::string::npos);
  CHECK(
      refusal([] {
        (void)TensorLayout::row_major({1, kLargest, 3});
      }) ==
      "view-overflow: row-major view of sizes [1, 9223372036854775807, 3]: the stride of dim 0 is "
      "beyond 2^63 - 1; rule: positions of elements fit 63 bits; cure: make sizes smaller");
  CHECK(refusal([] { (void)strided({kLargest}, {1}).bytes(4); }) ==
        "view-overflow: view [9223372036854775807]:[1]+0: its elements of 4 bytes end beyond byte "
        "2^63 - 1; rule: offsets in bytes fit 63 bits; cure: make sizes or strides smaller");
  CHECK(strided({kLargest / 4}, {1}).bytes(4) == static_cast<std::uint64_t>(kLargest / 4) * 4);
  CHECK(refusal([] {
          (void)strided({kLargest, kLargest}, {1, 1}, 0).count();
        }).find("view-overflow") == 0);
}

TEST_CASE("falsification 45: an index out of range is an error and no access") {
  const TensorLayout view = strided({3, 4}, {4, 1}, 2);
  CHECK(view.linear_index({2, 3}) == 13);
  CHECK(
      refusal([&] {
        (void)view.linear_index({3, 0});
      }) ==
      "out-of-bounds: view [3, 4]:[4, 1]+2: index 3 in dim 0 of size 3; rule: an index is at least "
      "0 and below the size; cure: check the bounds before the access");
  CHECK(refusal([&] {
          (void)view.linear_index({0, -1});
        }) ==
        "out-of-bounds: view [3, 4]:[4, 1]+2: index -1 in dim 1 of size 4; rule: an index is at "
        "least 0 and below the size; cure: check the bounds before the access");
  CHECK(refusal([&] { (void)view.linear_index({0}); }) ==
        "out-of-bounds: view [3, 4]:[4, 1]+2: an index of 1 number; rule: an index has one number "
        "for "
        "each dim; cure: give 2 numbers");
  CHECK(refusal([&] { (void)strided({kAny}, {1}).linear_index({0}); }) ==
        "view: view [?]:[1]+0: a size or stride is dynamic; rule: elements of a static view have "
        "positions; cure: bind() the sizes and strides of the launch first");
}

TEST_CASE("slices") {
  const TensorLayout view = TensorLayout::row_major({6, 8});
  CHECK(view.slice({1, 2}, {3, 4}).text() == "[3, 4]:[8, 1]+10");
  CHECK(view.slice_dim(1, 7, 1).text() == "[6, 1]:[8, 1]+7");
  CHECK(view.slice_dim(0, kAny, 2).text() == "[2, 8]:[8, 1]+?");
  CHECK(strided({kAny, 8}, {8, 1}).slice_dim(0, 3, kAny).text() == "[?, 8]:[8, 1]+24");
  CHECK(refusal([&] { (void)view.slice_dim(1, 5, 4); }) ==
        "out-of-bounds: view [6, 8]:[8, 1]+0: a slice of 4 elements from 5 in dim 1; rule: a slice "
        "has 1 element or more and is within the dim; cure: the dim's size is 8");
  CHECK(refusal([&] { (void)view.slice_dim(1, kLargest, kLargest); }).find("out-of-bounds") == 0);
  CHECK(refusal([&] { (void)view.slice_dim(0, 0, 0); }).find("a slice of 0 elements") !=
        std::string::npos);
  CHECK(
      refusal([&] { (void)view.slice_dim(2, 0, 1); }) ==
      "view: view [6, 8]:[8, 1]+0: a slice of dim 2; rule: a dim is below the rank; cure: its rank "
      "is 2");
  CHECK(
      refusal([&] { (void)view.slice({0}, {1}); }) ==
      "view: view [6, 8]:[8, 1]+0: a slice from [0] of sizes [1]; rule: a slice has a start and a "
      "size for each dim; cure: give 2 of each");
}

TEST_CASE("falsification 42: transposing swaps sizes and strides, twice is nothing") {
  const TensorLayout view = strided({2, 3, 4}, {100, 10, 2}, 5);
  CHECK(view.transpose().text() == "[2, 4, 3]:[100, 2, 10]+5");
  CHECK(view.transpose().transpose() == view);
  CHECK(view.permute({2, 0, 1}).text() == "[4, 2, 3]:[2, 100, 10]+5");
  CHECK(view.permute({2, 0, 1}).permute({1, 2, 0}) == view);
  for (std::int64_t i = 0; i < 3; ++i) {
    for (std::int64_t j = 0; j < 4; ++j) {
      CHECK(view.linear_index({1, i, j}) == view.transpose().linear_index({1, j, i}));
    }
  }
  CHECK(refusal([] { (void)strided({4}, {1}).transpose(); }) ==
        "view: view [4]:[1]+0: transpose(); rule: two dims are swapped; cure: use a view of rank 2 "
        "or more");
  for (const Dims& order : {Dims{0, 1}, Dims{0, 0, 1}, Dims{0, 1, 3}, Dims{-1, 0, 1}}) {
    CHECK(refusal([&] { (void)view.permute(order); }) ==
          "view: view [2, 3, 4]:[100, 10, 2]+5: dims in the order " + order.text() +
              "; rule: an order names each dim once; cure: permute the numbers 0 to 2");
  }
}

TEST_CASE("reshape of contiguous views") {
  const TensorLayout view = TensorLayout::row_major({6, 8}, 3);
  CHECK(view.reshape({2, 3, 8}).text() == "[2, 3, 8]:[24, 8, 1]+3");
  CHECK(view.reshape({48}).text() == "[48]:[1]+3");
  CHECK(view.slice_dim(0, 2, 2).reshape({4, 4}).text() == "[4, 4]:[4, 1]+19");
  CHECK(TensorLayout().reshape({1, 1}).text() == "[1, 1]:[1, 1]+0");
  CHECK(refusal([&] { (void)view.transpose().reshape({48}); }) ==
        "view: view [8, 6]:[1, 8]+3: reshape to [48]; rule: only a view that is known to be "
        "contiguous has other shapes; cure: copy it into contiguous memory first");
  CHECK(refusal([&] {
          (void)view.reshape({7, 7});
        }) ==
        "view: view [6, 8]:[8, 1]+3: reshape to [7, 7]; rule: both shapes have the same number of "
        "elements; cure: it has 48 elements, the new shape 49");
  CHECK(refusal([&] { (void)strided({kAny, 8}, {8, 1}).reshape({8, kAny}); }).find("view") == 0);
}

TEST_CASE("a broadcast view repeats elements and is read-only") {
  const TensorLayout row = TensorLayout::row_major({1, 4}, 2);
  const TensorLayout view = row.broadcast({3, 5, 4});
  CHECK(view.text() == "[3, 5, 4]:[0, 0, 1]+2 read-only");
  CHECK(view.linear_index({2, 4, 3}) == 5);
  CHECK(view.overlap() == Overlap::Some);
  CHECK(view.read_only());
  CHECK(view.transpose().read_only());
  CHECK(view.slice_dim(0, 1, 1).read_only());
  // Nothing is repeated, and still the answer does not depend on the sizes.
  CHECK(row.broadcast({1, 4}).read_only());
  CHECK(refusal([&] { view.require_writable("a copy"); }) ==
        "view: view [3, 5, 4]:[0, 0, 1]+2 read-only: a copy writes through it; rule: a broadcast "
        "view is read-only; cure: write to the view that was broadcast");
  CHECK(refusal([&] {
          (void)row.broadcast({3, 5});
        }) ==
        "view: view [1, 4]:[4, 1]+2: broadcast to [3, 5]; rule: a dim keeps its size, or is "
        "repeated if its size is 1; cure: dim 1 has size [4]");
  CHECK(refusal([&] { (void)row.broadcast({4}); }) ==
        "view: view [1, 4]:[4, 1]+2: broadcast to [4]; rule: dims are added, never removed; cure: "
        "give 2 sizes or more");
  CHECK(refusal([&] {
          (void)row.broadcast({0, 4});
        }) ==
        "view: view [1, 4]:[4, 1]+2: broadcast to [0, 4]; rule: sizes are 1 or more; cure: make a "
        "size dynamic that may be 0 when the kernel runs");
}

TEST_CASE("stores through a view that is known to overlap are refused") {
  CHECK(refusal([] {
          strided({4, 4}, {1, 1}).require_writable("store_tile");
        }) ==
        "view: view [4, 4]:[1, 1]+0: store_tile writes through it; rule: no store goes through a "
        "view in which two indices name one element; cure: write through a view whose strides keep "
        "its elements apart");
  strided({4, 4}, {4, 1}).require_writable("store_tile");
  // Not known: allowed.
  strided({kAny, 4}, {kAny, 1}).require_writable("store_tile");
  // Injective, though no stride is beyond the other dim: 0 2 4, 3 5 7.
  CHECK(strided({3, 2}, {2, 3}).overlap() == Overlap::None);
  CHECK(strided({4, 3}, {2, 3}).overlap() == Overlap::Some);
}

TEST_CASE("dynamic sizes and strides are bound at the launch, where a size may be 0") {
  const TensorLayout view = strided({kAny, 4}, {kAny, 1});
  CHECK(view.overlap() == Overlap::Unknown);
  CHECK_FALSE(view.is_static());
  CHECK_FALSE(view.is_contiguous());
  CHECK(view.bind({3, 4}, {6, 1}).text() == "[3, 4]:[6, 1]+0");
  const TensorLayout empty = view.bind({0, 4}, {6, 1});
  CHECK(empty.count() == 0);
  CHECK(empty.extent() == 0);
  CHECK(empty.bytes(4) == 0);
  CHECK(empty.is_contiguous());
  CHECK(empty.overlap() == Overlap::None);
  CHECK(Partition(empty, ptx::Type::f32, {2, 2}).count() == 0);
  CHECK(
      refusal([&] {
        (void)view.bind({3, 5}, {6, 1});
      }) ==
      "view: view [?, 4]:[?, 1]+0: size [5] and stride [1] for dim 1; rule: a dynamic size becomes "
      "0 or more, a dynamic stride 1 or more, others stay; cure: it has size [4] and stride [1]");
  CHECK(refusal([&] {
          (void)view.bind({3, 4}, {0, 1});
        }).find("stride [0] for dim 0") != std::string::npos);
  CHECK(refusal([&] { (void)view.bind({3}, {1}); }).find("each dim gets") != std::string::npos);
  CHECK(refusal([&] {
          (void)view.bind({3, 4}, {6, 1}, 1);
        }).find("offset 1 for it") != std::string::npos);
  CHECK(refusal([&] { (void)view.bind({kLargest, 4}, {kLargest, 1}); }).find("view-overflow") == 0);
  CHECK(refusal([&] { (void)view.count(); }) ==
        "view: view [?, 4]:[?, 1]+0: dim 0 is dynamic; rule: elements are counted in static views; "
        "cure: bind() the sizes of the launch first");
}

TEST_CASE("falsification 47: contiguity, with dims of size 1 and without elements") {
  CHECK(TensorLayout().is_contiguous());
  CHECK(strided({1, 1}, {77, 5}).is_contiguous());
  CHECK(strided({3, 1, 4}, {4, 99, 1}).is_contiguous());
  CHECK_FALSE(strided({3, 2, 4}, {4, 99, 1}).is_contiguous());
  CHECK_FALSE(strided({4}, {2}).is_contiguous());
  CHECK(strided({kAny, 8}, {8, 1}).is_contiguous());
  CHECK_FALSE(strided({8, kAny}, {kAny, 1}).is_contiguous());
  CHECK(TensorLayout::row_major({3, 4}).order() == StorageOrder::RowMajor);
  CHECK(TensorLayout::column_major({3, 4}).order() == StorageOrder::ColumnMajor);
  CHECK(strided({3, 4}, {8, 1}).order() == StorageOrder::Strided);
}

TEST_CASE("falsification 50: the description of a view is below 1 % of a tensor of 1 MB") {
  CHECK(sizeof(TensorLayout) * 100 < (1u << 20));
  CHECK(sizeof(Partition) * 100 < (1u << 20));
}

TEST_CASE("texts that are no views") {
  for (const char* const text : {"", "[4]:[1]", "[4]:[1]+", "[4:[1]+0", "[4, ]:[1]+0", "[4]:[1]+0 ",
                                 "[4]:[1]+0 readonly", "4:1+0", "[x]:[1]+0"}) {
    CHECK(refusal([&] { (void)TensorLayout::parse(text); }) ==
          "view: '" + std::string(text) +
              "' is no view; rule: a view is written as sizes, strides and offset; cure: write it "
              "like [4, 8]:[8, 1]+0, with ? for what is dynamic");
  }
  CHECK(refusal([] { (void)TensorLayout::parse("[0]:[1]+0"); }).find("size 0") !=
        std::string::npos);
  CHECK(refusal([] { (void)TensorLayout::parse("[4]:[0]+0"); }).find("stride 0") !=
        std::string::npos);
}
