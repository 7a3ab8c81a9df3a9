// src/builder/tile/spread.cpp - a tile spread over threads and shared memory
#include <algorithm>
#include <bit>

#include "ptxgen/builder/tile.hpp"
#include "support/count.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::detail {

std::uint64_t SpreadPlan::members() const noexcept {
  std::uint64_t all = 1;
  for (std::size_t i = 0; i < tile.size(); ++i)
    all *= static_cast<std::uint64_t>(tile[i] / each[i]);
  return std::min<std::uint64_t>(all, threads);
}

std::vector<Dims> SpreadPlan::offsets() const {
  std::uint64_t blocks = 1;
  for (std::size_t i = 0; i < tile.size(); ++i)
    blocks *= static_cast<std::uint64_t>(tile[i] / each[i]);
  std::vector<Dims> all;
  for (std::uint64_t block = 0; block < blocks; block += threads) {
    // The thread's bits are 0 here: what is left is the distance between its blocks.
    Dims start = Dims::filled(tile.size(), 0);
    std::uint64_t number = block;
    for (std::size_t n = 0; n < tile.size(); ++n) {
      const std::size_t dim = order[n];
      const auto count = static_cast<std::uint64_t>(tile[dim] / each[dim]);
      start[dim] = static_cast<std::int64_t>(number % count) * each[dim];
      number /= count;
    }
    Dims within = Dims::filled(tile.size(), 0);
    while (true) {
      Dims offset = start;
      for (std::size_t i = 0; i < tile.size(); ++i) offset[i] += within[i];
      all.push_back(offset);
      std::size_t n = 0;
      for (; n < tile.size(); ++n) {
        const std::size_t dim = order[n];
        within[dim] += n == 0 ? vector : 1;
        if (within[dim] < each[dim]) break;
        within[dim] = 0;
      }
      if (n == tile.size()) break;
    }
  }
  return all;
}

Dims SpreadPlan::first(std::uint32_t thread) const noexcept {
  Dims place = Dims::filled(tile.size(), 0);
  std::uint64_t number = thread;
  for (std::size_t n = 0; n < tile.size(); ++n) {
    const std::size_t dim = order[n];
    const auto count = static_cast<std::uint64_t>(tile[dim] / each[dim]);
    place[dim] = static_cast<std::int64_t>(number % count) * each[dim];
    number /= count;
  }
  return place;
}

namespace {

/// Row and column of an element: leading dims are rows.
tile::WarpAccess::Element element_of(const Dims& shape, const Dims& at, bool transposed) {
  std::uint32_t row = 0;
  for (std::size_t i = 0; i + 1 < shape.size(); ++i) {
    row = row * static_cast<std::uint32_t>(shape[i]) + static_cast<std::uint32_t>(at[i]);
  }
  const auto column = static_cast<std::uint32_t>(at[shape.size() - 1]);
  return transposed ? tile::WarpAccess::Element{column, row}
                    : tile::WarpAccess::Element{row, column};
}

}  // namespace

std::vector<tile::WarpAccess> shared_accesses(const SpreadPlan& plan, bool transposed,
                                              std::uint32_t element_bytes) {
  const std::size_t rank = plan.tile.size();
  const bool vectors =
      !transposed && plan.order[0] == rank - 1 && plan.vector * element_bytes <= 16;
  const std::vector<Dims> offsets = plan.offsets();
  const std::uint32_t pieces = vectors ? 1 : plan.vector;
  std::vector<tile::WarpAccess> all;
  for (std::uint32_t piece = 0; piece < pieces; ++piece) {
    tile::WarpAccess access;
    access.elements = vectors ? plan.vector : 1;
    access.times = offsets.size();
    for (std::uint32_t lane = 0; lane < 32; ++lane) {
      // Lanes without elements repeat lane 0, which costs nothing.
      Dims at = plan.first(lane < plan.members() ? lane : 0);
      at[plan.order[0]] += piece;
      access.lanes[lane] = element_of(plan.tile, at, transposed);
    }
    all.push_back(access);
  }
  return all;
}

tile::PlacementChoice choose(const Dims& shape, std::uint32_t bytes,
                             std::span<const tile::WarpAccess> accesses) {
  std::uint32_t rows = 1;
  for (std::size_t i = 0; i + 1 < shape.size(); ++i) rows *= static_cast<std::uint32_t>(shape[i]);
  const auto columns = shape.size() == 0 ? 1 : static_cast<std::uint32_t>(shape[shape.size() - 1]);
  return tile::choose_placement(rows, columns, bytes, accesses);
}

SharedTileData make_shared_tile(KernelBuilder& k, const PointerData& base, const Dims& shape,
                                std::uint32_t bytes, const tile::Placement& placement) {
  SharedTileData data;
  data.k = &k;
  data.base = base;
  data.placement = placement;
  data.bytes = bytes;
  for (std::size_t i = 0; i + 1 < shape.size(); ++i) {
    data.rows *= static_cast<std::uint32_t>(shape[i]);
  }
  if (shape.size() != 0) data.columns = static_cast<std::uint32_t>(shape[shape.size() - 1]);
  return data;
}

SharedCursor::SharedCursor(const SharedTileData& tile, const Extent& row, const Extent& column,
                           SourceLocation site)
    : tile_(tile), plain_(tile.base) {
  KernelBuilder& k = *tile.k;
  const tile::Placement& p = tile.placement;
  const Extent& r = tile.transposed ? column : row;
  const Extent& c = tile.transposed ? row : column;
  if (p.mask == 0) {
    if (r.is_constant() || c.is_constant()) {
      const std::int64_t known =
          (r.is_constant() ? r.constant() * p.pitch : 0) + (c.is_constant() ? c.constant() : 0);
      if (!r.is_constant())
        plain_ = advance(plain_, Index(r.value(), site), 1, p.pitch * tile.bytes, true);
      if (!c.is_constant()) plain_ = advance(plain_, Index(c.value(), site), 1, tile.bytes, true);
      plain_ = advance(plain_, Index(known, site), 1, tile.bytes, true);
    } else {
      const Value<u32> position = k.mad_lo(r.value(), p.pitch, c.value(), site);
      plain_ = advance(plain_, Index(position, site), 1, tile.bytes, true);
    }
    return;
  }
  const Value<u32> row_value =
      r.is_constant() ? k.constant<u32>(static_cast<std::uint32_t>(r.constant()), site) : r.value();
  const Value<u32> column_value =
      c.is_constant() ? k.constant<u32>(static_cast<std::uint32_t>(c.constant()), site) : c.value();
  plain_ = advance(plain_, Index(row_value, site), 1, p.pitch * tile.bytes, true);
  const Value<u32> low_row = k.and_(row_value, p.mask, site);
  const Value<u32> shifted =
      p.group == 1 ? low_row
                   : k.shl(low_row, static_cast<std::uint32_t>(std::countr_zero(p.group)), site);
  exchanged_.rebind(k.xor_(column_value, shifted, site));
}

PointerData SharedCursor::at(std::uint32_t row, std::uint32_t column, SourceLocation site) {
  const tile::Placement& p = tile_.placement;
  if (tile_.transposed) std::swap(row, column);
  if (p.mask == 0) {
    return advance(plain_, Index(std::int64_t{row} * p.pitch + column, site), 1, tile_.bytes, true);
  }
  // The thread's bits and these do not overlap, so `xor` combines them in any order.
  const std::uint32_t changed = column ^ (row & p.mask) * p.group;
  for (const auto& [key, pointer] : known_) {
    if (key == changed)
      return advance(pointer, Index(std::int64_t{row} * p.pitch, site), 1, tile_.bytes, true);
  }
  KernelBuilder& k = *tile_.k;
  const Value<u32> place = changed == 0 ? exchanged_ : k.xor_(exchanged_, changed, site);
  known_.emplace_back(changed, advance(plain_, Index(place, site), 1, tile_.bytes, true));
  return advance(known_.back().second, Index(std::int64_t{row} * p.pitch, site), 1, tile_.bytes,
                 true);
}

void stage_async(KernelBuilder& k, const PointerData& to, const PointerData& from,
                 std::uint32_t bytes, const TilePlace& place, SourceLocation site) {
  const Operand target(Ptr<b8, Shared>(to), site);
  const Operand source(Ptr<b8, Global>(from), site);
  const ptx::Modifier cache = bytes == 16 ? ptx::Modifier::cg : ptx::Modifier::ca;
  if (!place.guarded && !place.never) {
    k.emit(ptx::Op::cp_async,
           {ptx::Modifier::async, cache, ptx::Modifier::shared, ptx::Modifier::global},
           {target, source, bytes}, site);
    return;
  }
  const Value<u32> copied =
      place.never ? k.constant<u32>(0u, site)
                  : k.selp(k.constant<u32>(bytes, site), 0u, In<pred>(place.in_range, site), site);
  k.emit(ptx::Op::cp_async_src_size,
         {ptx::Modifier::async, cache, ptx::Modifier::shared, ptx::Modifier::global},
         {target, source, bytes, copied}, site);
}

SpreadPlan product_plan(const TileGroup& group, const Dims& shape, const Dims& each,
                        SourceLocation site) {
  const auto is_power = [](std::int64_t n) {
    return n > 0 && std::has_single_bit(static_cast<std::uint64_t>(n));
  };
  bool fits = shape.size() == 3 && each.size() == 2;
  for (std::size_t i = 0; fits && i < 3; ++i) {
    fits = is_power(shape[i]) && (i == 2 || (is_power(each[i]) && each[i] <= shape[i]));
  }
  fits = fits &&
         (shape[0] / each[0]) * (shape[1] / each[1]) == static_cast<std::int64_t>(group.threads());
  if (!fits) {
    group.builder().refuse(
        "tile-limits",
        format_text("a product of rows, columns and depth {} with {} for a thread and {}; rule: "
                    "these are powers of two, and the threads' parts are all of the result; cure: "
                    "change the shape, the parts or the group",
                    shape.text(), each.text(), count_text(group.threads(), "thread")),
        site);
  }
  SpreadPlan plan;
  plan.tile = Dims{shape[0], shape[1]};
  plan.each = each;
  plan.order = {1, 0};
  plan.threads = group.threads();
  plan.vector = each[1] % 4 == 0 ? 4 : each[1] % 2 == 0 ? 2 : 1;
  return plan;
}

std::vector<tile::WarpAccess> product_use(const SpreadPlan& plan, std::uint32_t depth, bool rows) {
  tile::WarpAccess access;
  access.elements = rows ? 1 : plan.vector;
  access.times =
      depth * static_cast<std::uint64_t>(rows ? plan.each[0] : plan.each[1] / plan.vector);
  for (std::uint32_t lane = 0; lane < 32; ++lane) {
    const Dims at = plan.first(lane);
    access.lanes[lane] = rows ? tile::WarpAccess::Element{static_cast<std::uint32_t>(at[0]), 0}
                              : tile::WarpAccess::Element{0, static_cast<std::uint32_t>(at[1])};
  }
  return {access};
}

void check_product(KernelBuilder& k, const SpreadPlan& plan, std::uint32_t depth,
                   const SharedTileData& a, const SharedTileData& b, SourceLocation site) {
  const bool fits = a.rows == plan.tile[0] && a.columns == depth && b.rows == depth &&
                    b.columns == plan.tile[1] && b.placement.pitch % plan.vector == 0 &&
                    (b.placement.mask == 0 || b.placement.group >= plan.vector);
  if (fits) return;
  k.refuse(
      "partition",
      format_text("a product of shared tiles [{}, {}] and [{}, {}]; rule: they are [{}, {}] and "
                  "[{}, {}], placed for use_a() and use_b(); cure: make them so",
                  a.rows, a.columns, b.rows, b.columns, plan.tile[0], depth, depth, plan.tile[1]),
      site);
}

std::array<Extent, 2> product_place(const TileGroup& group, const SpreadPlan& plan,
                                    SourceLocation site) {
  KernelBuilder& k = group.builder();
  const auto across = static_cast<std::uint32_t>(plan.tile[1] / plan.each[1]);
  const Value<u32> column = k.and_(group.thread(), across - 1, site);
  const Value<u32> row =
      k.shr(group.thread(), static_cast<std::uint32_t>(std::countr_zero(across)), site);
  const Value<u32> first_row = k.mul_lo(row, static_cast<std::uint32_t>(plan.each[0]), site);
  const Value<u32> first_column = k.mul_lo(column, static_cast<std::uint32_t>(plan.each[1]), site);
  return {Extent(first_row), Extent(first_column)};
}

}  // namespace ptxgen::inline v0::detail
