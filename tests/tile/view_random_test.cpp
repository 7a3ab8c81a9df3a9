// tests/tile/view_random_test.cpp - views and partitions against brute force
#include <algorithm>
#include <catch2/catch.hpp>
#include <random>
#include <set>
#include <vector>

#include "ptxgen/tile/view.hpp"
#include "support/harness.hpp"

using namespace ptxgen;

namespace {

using Positions = std::vector<std::int64_t>;

/// Calls `visit(index)` for each index of the sizes, the last dim fastest.
template <class Visit>
void for_each_index(const Dims& sizes, const Visit& visit) {
  if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) return;
  Dims index = Dims::filled(sizes.size(), 0);
  while (true) {
    visit(index);
    std::size_t dim = sizes.size();
    while (dim > 0 && ++index[dim - 1] == sizes[dim - 1]) index[--dim] = 0;
    if (dim == 0) return;
  }
}

std::int64_t at(const TensorLayout& view, const Dims& index) {
  return view.linear_index(std::span<const std::int64_t>(index.begin(), index.size()));
}

/// A tensor as the list of its elements' positions: what a view must agree with.
struct Model {
  Dims sizes;
  Positions positions;

  [[nodiscard]] std::int64_t operator()(const Dims& index) const {
    std::int64_t number = 0;
    for (std::size_t i = 0; i < sizes.size(); ++i) number = number * sizes[i] + index[i];
    return positions[static_cast<std::size_t>(number)];
  }
  /// The model of sizes whose element at an index is this one's at `from(index)`.
  template <class From>
  [[nodiscard]] Model select(const Dims& wanted, const From& from) const {
    Model other{wanted, {}};
    for_each_index(wanted,
                   [&](const Dims& index) { other.positions.push_back((*this)(from(index))); });
    return other;
  }
};

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  std::int64_t below(std::int64_t end) {
    return static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(end));
  }
  Dims dims(std::size_t rank, std::int64_t largest) {
    Dims all = Dims::filled(rank, 1);
    for (std::size_t i = 0; i < rank; ++i) all[i] = 1 + below(largest);
    return all;
  }
  Dims permutation(std::size_t rank) {
    Dims order = Dims::filled(rank, 0);
    for (std::size_t i = 0; i < rank; ++i) order[i] = static_cast<std::int64_t>(i);
    for (std::size_t i = rank; i > 1; --i)
      std::swap(order[i - 1], order[static_cast<std::size_t>(below(static_cast<std::int64_t>(i)))]);
    return order;
  }
  /// Sizes up to 4, fewer elements for high ranks; dense, with gaps, or any strides.
  TensorLayout view() {
    const auto rank = static_cast<std::size_t>(below(kMaxRank + 1));
    const Dims sizes = dims(rank, rank > 3 ? 3 : 4);
    const std::int64_t offset = below(2) * below(50);
    switch (below(4)) {
      case 0:
        return TensorLayout::row_major(sizes, offset);
      case 1:
        return TensorLayout::column_major(sizes, offset);
      case 2: {
        Dims strides = sizes;
        std::int64_t stride = 1 + below(3);
        for (std::size_t i = rank; i-- > 0;) {
          strides[i] = stride;
          stride = stride * sizes[i] + below(3);
        }
        return TensorLayout::strided(sizes, strides, offset);
      }
      default:
        return TensorLayout::strided(sizes, dims(rank, 30), offset);
    }
  }

 private:
  std::mt19937_64 engine_;
};

Model model_of(const TensorLayout& view) {
  Model model{view.sizes(), {}};
  for_each_index(view.sizes(), [&](const Dims& index) {
    std::int64_t position = view.offset();
    for (std::size_t i = 0; i < index.size(); ++i) position += index[i] * view.stride(i);
    model.positions.push_back(position);
  });
  return model;
}

/// One random operation on both.
void step(Random& random, TensorLayout& view, Model& model) {
  const std::size_t rank = view.rank();
  if (rank == 0) return;
  switch (random.below(4)) {
    case 0: {
      const auto dim = static_cast<std::size_t>(random.below(static_cast<std::int64_t>(rank)));
      const std::int64_t first = random.below(view.size(dim));
      const std::int64_t size = 1 + random.below(view.size(dim) - first);
      view = view.slice_dim(dim, first, size);
      Dims sizes = model.sizes;
      sizes[dim] = size;
      model = model.select(sizes, [&](Dims index) {
        index[dim] += first;
        return index;
      });
      return;
    }
    case 1: {
      const Dims order = random.permutation(rank);
      view = view.permute(order);
      Dims sizes = order;
      for (std::size_t i = 0; i < rank; ++i)
        sizes[i] = model.sizes[static_cast<std::size_t>(order[i])];
      model = model.select(sizes, [&](const Dims& index) {
        Dims old = index;
        for (std::size_t i = 0; i < rank; ++i) old[static_cast<std::size_t>(order[i])] = index[i];
        return old;
      });
      return;
    }
    case 2: {
      if (!view.is_contiguous()) return;
      Dims sizes{static_cast<std::int64_t>(view.count())};
      if (view.size(0) > 1 && rank < kMaxRank) {
        sizes = Dims{view.size(0), static_cast<std::int64_t>(view.count()) / view.size(0), 1};
      }
      view = view.reshape(sizes);
      model.sizes = sizes;
      return;
    }
    default: {
      Dims first = model.sizes;
      Dims sizes = model.sizes;
      for (std::size_t i = 0; i < rank; ++i) {
        first[i] = random.below(view.size(i));
        sizes[i] = 1 + random.below(view.size(i) - first[i]);
      }
      view = view.slice(first, sizes);
      model = model.select(sizes, [&](Dims index) {
        for (std::size_t i = 0; i < rank; ++i) index[i] += first[i];
        return index;
      });
      return;
    }
  }
}

bool agrees(const TensorLayout& view, const Model& model) {
  if (view.sizes() != model.sizes || view.count() != model.positions.size()) return false;
  std::size_t n = 0;
  bool equal = true;
  for_each_index(view.sizes(), [&](const Dims& index) {
    equal = equal && at(view, index) == model.positions[n++];
  });
  Positions sorted = model.positions;
  const bool dense = [&] {
    for (std::size_t i = 0; i < sorted.size(); ++i) {
      if (sorted[i] != sorted[0] + static_cast<std::int64_t>(i)) return false;
    }
    return true;
  }();
  std::sort(sorted.begin(), sorted.end());
  const bool twice = std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end();
  return equal && view.is_contiguous() == dense &&
         view.overlap() == (twice ? Overlap::Some : Overlap::None) &&
         view.offset() + static_cast<std::int64_t>(view.extent()) == sorted.back() + 1 &&
         TensorLayout::parse(view.text()) == view;
}

}  // namespace

TEST_CASE(
    "falsification 31: views of random shapes, strides, slices and transposes agree with brute "
    "force") {
  Random random(test::seed());
  const int cases = test::count(1'000'000, 10'000'000) / (test::kSanitized ? 50 : 1);
  int wrong = 0;
  std::string first;
  for (int n = 0; n < cases; ++n) {
    TensorLayout view = random.view();
    Model model = model_of(view);
    const std::string start = view.text();
    for (std::int64_t steps = random.below(4); steps > 0; --steps) step(random, view, model);
    if (agrees(view, model)) continue;
    if (++wrong == 1) first = start + " became " + view.text();
  }
  INFO(first);
  CHECK(wrong == 0);
}

TEST_CASE("falsification 41: a slice keeps the strides") {
  Random random(test::seed() + 1);
  for (int n = 0; n < 10'000; ++n) {
    TensorLayout view = random.view();
    if (view.rank() == 0) continue;
    const auto dim = static_cast<std::size_t>(random.below(static_cast<std::int64_t>(view.rank())));
    const std::int64_t first = random.below(view.size(dim));
    const TensorLayout part = view.slice_dim(dim, first, 1 + random.below(view.size(dim) - first));
    REQUIRE(part.strides() == view.strides());
    REQUIRE(part.offset() == view.offset() + first * view.stride(dim));
  }
}

TEST_CASE("falsification 48: a view written and read back is the same view") {
  Random random(test::seed() + 2);
  for (int n = 0; n < 20'000; ++n) {
    TensorLayout view = random.view();
    if (random.below(4) == 0) {
      Dims sizes = view.sizes();
      for (std::size_t i = 0; i < sizes.size(); ++i) {
        if (sizes[i] == 1) sizes[i] = 1 + random.below(5);
      }
      view = view.broadcast(sizes);
    }
    REQUIRE(TensorLayout::parse(view.text()) == view);
  }
  const TensorLayout dynamic =
      TensorLayout::strided({kDynamicDim, 4}, {kDynamicDim, 1}).slice_dim(0, kDynamicDim, 2);
  CHECK(dynamic.text() == "[2, 4]:[?, 1]+?");
  CHECK(TensorLayout::parse(dynamic.text()) == dynamic);
}

TEST_CASE("falsification 33, 37: strides of all layouts, ranks 1 to 4") {
  Random random(test::seed() + 3);
  for (std::size_t rank = 1; rank <= 4; ++rank) {
    for (int n = 0; n < 500; ++n) {
      const Dims sizes = random.dims(rank, 6);
      const TensorLayout rows = TensorLayout::row_major(sizes);
      const TensorLayout columns = TensorLayout::column_major(sizes);
      std::int64_t number = 0;
      for_each_index(sizes, [&](const Dims& index) {
        REQUIRE(at(rows, index) == number++);
        std::int64_t position = 0;
        for (std::size_t i = rank; i-- > 0;) position = position * sizes[i] + index[i];
        REQUIRE(at(columns, index) == position);
      });
      Dims tile = sizes;
      for (std::size_t i = 0; i < rank; ++i) tile[i] = std::int64_t{1} << random.below(3);
      const TiledLayout tiled(sizes, tile, ptx::Type::f32);
      std::set<std::int64_t> seen;
      for_each_index(sizes, [&](const Dims& index) {
        const std::int64_t position =
            tiled.linear_index(std::span<const std::int64_t>(index.begin(), rank));
        REQUIRE(position >= 0);
        REQUIRE(static_cast<std::uint64_t>(position) < tiled.extent());
        REQUIRE(seen.insert(position).second);
        // The same element through the view of its tile.
        Dims of_tile = index;
        Dims within = index;
        for (std::size_t i = 0; i < rank; ++i) {
          of_tile[i] /= tile[i];
          within[i] %= tile[i];
        }
        REQUIRE(at(tiled.tile_view(std::span<const std::int64_t>(of_tile.begin(), rank)), within) ==
                position);
      });
    }
  }
}

TEST_CASE("falsification 32: tiles cover each element exactly once, in every order of visit") {
  Random random(test::seed() + 4);
  const int cases = test::count(100'000, 1'000'000) / (test::kSanitized ? 50 : 1);
  for (int n = 0; n < cases; ++n) {
    TensorLayout view = random.view();
    if (view.rank() == 0) continue;
    const std::size_t rank = view.rank();
    Dims tile = view.sizes();
    for (std::size_t i = 0; i < rank; ++i) tile[i] = std::int64_t{1} << random.below(3);
    const Partition parts(view, ptx::Type::f32, tile, Padding::None, random.permutation(rank));
    Traversal traversal;
    traversal.kind = static_cast<Traversal::Kind>(random.below(3));
    traversal.rows = static_cast<std::uint32_t>(1 + random.below(3));
    Positions covered;
    std::set<std::vector<std::int64_t>> visited;
    for (std::uint64_t number = 0; number < parts.count(); ++number) {
      const Dims index = parts.index_of(number, traversal);
      REQUIRE(visited.insert({index.begin(), index.end()}).second);
      const TileInfo info = parts.tile(std::span<const std::int64_t>(index.begin(), rank));
      bool full = true;
      for (std::size_t i = 0; i < rank; ++i) full = full && info.sizes[i] == tile[i];
      REQUIRE(info.is_edge != full);
      for_each_index(info.sizes, [&](const Dims& element) {
        Dims coordinate = info.first;
        for (std::size_t i = 0; i < rank; ++i) {
          const auto dim = static_cast<std::size_t>(parts.dim_map()[i]);
          coordinate[dim] = index[i] * tile[i] + element[i];
        }
        REQUIRE(at(info.view, element) == at(view, coordinate));
        std::int64_t element_number = 0;
        for (std::size_t i = 0; i < rank; ++i)
          element_number = element_number * view.size(i) + coordinate[i];
        covered.push_back(element_number);
      });
    }
    std::sort(covered.begin(), covered.end());
    REQUIRE(covered.size() == view.count());
    for (std::size_t i = 0; i < covered.size(); ++i)
      REQUIRE(covered[i] == static_cast<std::int64_t>(i));
  }
}
