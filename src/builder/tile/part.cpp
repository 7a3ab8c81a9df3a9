// src/builder/tile/part.cpp - a thread's accesses to a tile: addresses and bounds
#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

#include "ptxgen/builder/tile.hpp"
#include "support/count.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0 {

TileGroup TileGroup::block(KernelBuilder& k, std::uint32_t threads, Site site) {
  if (!std::has_single_bit(threads) || threads < 32 || threads > 1024) {
    k.refuse("block-size",
             format_text("a group of {}; rule: a block that works on tiles has a power of two of "
                         "threads, 32 to 1024; cure: use {}",
                         count_text(threads, "thread"),
                         std::clamp(std::bit_floor(threads | 1u), 32u, 1024u)),
             site);
  }
  return {k, threads, true, k.tid_x(site)};
}

TileGroup TileGroup::warp(KernelBuilder& k, Site site) { return {k, 32, false, k.laneid(site)}; }

void TileGroup::sync(Site site) {
  if (async_) k_->cp_async_wait_all(site);
  async_ = false;
  if (block_) {
    k_->bar_sync(0, site);
  } else {
    k_->bar_warp_sync(KernelBuilder::kAllLanes, site);
  }
}

namespace detail {

namespace {

constexpr std::uint32_t kMost32 = 0xffffffffu;

std::uint32_t log2_of(std::int64_t power) {
  return static_cast<std::uint32_t>(std::countr_zero(static_cast<std::uint64_t>(power)));
}

Dims zeros(const Dims& like) { return Dims::filled(like.size(), 0); }

}  // namespace

/// See PartData.
class PartData::State {
 public:
  State(const TileGroup& group, const GridData& grid, std::span<const Extent> index,
        const TileOptions& options, SourceLocation site);
  /// At the place of another part, in another tensor.
  State(const State& other, const GridData& grid, SourceLocation site);
  /// Emits addresses and predicates of all accesses, moved by `shift` (by tile dim).
  [[nodiscard]] std::vector<TilePlace> places(const Dims& shift, SourceLocation site);
  void next(SourceLocation site);
  void bind(const SharedTileData& shared, SourceLocation site);
  [[nodiscard]] const SpreadPlan& plan() const noexcept { return plan_; }
  [[nodiscard]] const GridData& grid() const noexcept { return grid_; }
  [[nodiscard]] const Extent& first(std::size_t dim) const noexcept { return first_[dim]; }
  [[nodiscard]] KernelBuilder& builder() const noexcept { return *grid_.tensor.k; }
  [[nodiscard]] const TileOptions& options() const noexcept { return options_; }
  /// Whether only some threads have elements, and which.
  [[nodiscard]] bool partial() const noexcept { return partial_; }
  [[nodiscard]] const Pred& member() const noexcept { return member_; }
  /// Where element `n` of an access is in the bound shared tile, and whether the access is a
  /// vector there.
  [[nodiscard]] PointerData shared_at(const Dims& offset, std::uint32_t n, SourceLocation site);
  [[nodiscard]] bool shared_vectors() const noexcept;

 private:
  void spread(const TileGroup& group, SourceLocation site);
  void spread_vector(SourceLocation site);
  [[nodiscard]] std::uint32_t widest(std::size_t fast) const;
  void place_thread(const TileGroup& group, std::span<const Extent> index, SourceLocation site);
  void check_index(std::span<const Extent> index, SourceLocation site);
  void check_promise(const Extent& extent, SourceLocation site);
  void check_promises(SourceLocation site);
  [[nodiscard]] bool needs_check(std::size_t dim) const;
  [[nodiscard]] const Extent& size_of(std::size_t dim) const;
  [[nodiscard]] const Extent& stride_of(std::size_t dim) const;
  [[nodiscard]] Value<u64> step_bytes(std::size_t dim, std::uint64_t count, SourceLocation site);
  [[nodiscard]] PointerData start(SourceLocation site);
  void distances_between(const Dims& last, const Dims& offset, SourceLocation site);
  [[nodiscard]] PointerData pointer_of(const Dims& offset, SourceLocation site);
  [[nodiscard]] bool bound_dim(std::size_t dim, std::int64_t offset, Pred& p, bool& has,
                               SourceLocation site);
  void range(TilePlace& place, SourceLocation site);
  void prepare(SourceLocation site);

  struct Bound {  ///< a predicate that was emitted
    std::size_t dim;
    std::int64_t offset;
    ptx::Register with;
    Pred in_range;
  };
  struct Moved {  ///< an address or a distance that was emitted
    Dims offset;
    PointerData pointer;
  };
  struct Distance {
    std::size_t dim;
    std::uint64_t count;
    Value<u64> bytes;
  };

  GridData grid_;
  TileOptions options_;
  SpreadPlan plan_;
  Dims shift_;                                     ///< of the accesses that are emitted
  std::array<std::int64_t, kMaxRank> tile_end_{};  ///< of a constant index; 0: of any
  std::array<Extent, kMaxRank> within_, first_;    ///< the thread's element, in the tile and tensor
  std::vector<Var<u32>> moving_;                   ///< first_ of the dim that `next` moves
  std::vector<Var<Ptr<b8, Global>>> moving_base_;
  PointerData base_;
  Pred member_{nullptr, ptx::Register{}};
  bool partial_ = false;
  std::vector<Bound> fixed_bounds_, bounds_;
  std::vector<Distance> distances_;
  std::size_t fixed_distances_ = 0;  ///< of them, emitted where the part was made
  std::vector<Moved> pointers_;
  std::vector<SharedCursor> cursor_;  ///< none or one
  SharedTileData shared_;
};

PartData::State::State(const TileGroup& group, const GridData& grid, std::span<const Extent> index,
                       const TileOptions& options, SourceLocation site)
    : grid_(grid), options_(options), base_(grid.tensor.base) {
  KernelBuilder& k = builder();
  const std::size_t rank = grid.tile.size();
  if (index.size() != rank) {
    k.refuse("partition",
             format_text("{} for a tile of rank {}; rule: a tile is named by one index for each "
                         "dim; cure: give {}",
                         count_text(index.size(), "number"), rank, count_text(rank, "number")),
             site);
  }
  if (options.along >= static_cast<int>(rank)) {
    k.refuse(
        "partition",
        format_text("a part that moves along dim {} of a tile of rank {}; rule: it moves along "
                    "a dim of the tile; cure: name dim 0 to {}",
                    options.along, rank, rank - 1),
        site);
  }
  spread(group, site);
  if (options.check) {
    check_index(index, site);
    check_promises(site);
  }
  place_thread(group, index, site);
  prepare(site);
}

PartData::State::State(const State& other, const GridData& grid, SourceLocation site)
    : grid_(grid),
      options_(other.options_),
      plan_(other.plan_),
      tile_end_(other.tile_end_),
      within_(other.within_),
      first_(other.first_),
      base_(grid.tensor.base),
      partial_(other.partial_) {
  const bool same = grid.tile == other.grid_.tile && grid.dim_map == other.grid_.dim_map &&
                    options_.along < 0 && other.grid_.tensor.bytes == grid.tensor.bytes;
  if (!same) {
    builder().refuse(
        "partition",
        "a part at the place of another; rule: both tiles have the same shape, dim map "
        "and element size, and the part stays; cure: make a part with an index",
        site);
  }
  member_.rebind(other.member_);
  spread_vector(site);
  bool bounds_hold = plan_.vector == other.plan_.vector;
  for (std::size_t i = 0; i < grid.tile.size(); ++i) {
    const Extent& a = size_of(i);
    const Extent& b = other.size_of(i);
    bounds_hold = bounds_hold && a.constant() == b.constant() &&
                  (a.is_constant() || a.value().reg() == b.value().reg());
  }
  if (bounds_hold) {
    for (const Bound& bound : other.fixed_bounds_) fixed_bounds_.push_back(bound);
  }
  prepare(site);
}

const Extent& PartData::State::size_of(std::size_t dim) const {
  return grid_.tensor.sizes[static_cast<std::size_t>(grid_.dim_map[dim])];
}
const Extent& PartData::State::stride_of(std::size_t dim) const {
  return grid_.tensor.strides[static_cast<std::size_t>(grid_.dim_map[dim])];
}

// The widest vector for this tensor, along plan_.order[0].
std::uint32_t PartData::State::widest(std::size_t fast) const {
  tile::RowFacts row;
  row.element_bytes = grid_.tensor.bytes;
  row.base_alignment = grid_.tensor.alignment;
  row.dense = stride_of(fast).is_constant() && stride_of(fast).constant() == 1;
  row.tile = static_cast<std::uint64_t>(grid_.tile[fast]);
  row.size_divisor = size_of(fast).divisor();
  for (std::size_t i = 0; i < grid_.tile.size(); ++i) {
    if (i != fast) row.stride_divisor = std::gcd(row.stride_divisor, stride_of(i).divisor());
  }
  // PTX has vectors of more than 4 elements for few targets only; 16 bits are accessed in pairs.
  return std::min(tile::vector_elements(row), row.element_bytes == 2 ? 8u : 4u);
}

void PartData::State::spread_vector(SourceLocation site) {
  const std::size_t fast = plan_.order[0];
  const std::uint32_t legal = widest(fast);
  if (options_.each.size() == 0 && legal < plan_.vector) {
    builder().refuse(
        "partition",
        format_text("a part of vectors of {} at the place of another, where {} {} legal; "
                    "rule: both parts have the same elements; cure: promise the same "
                    "alignment of both tensors, or give TileOptions::each",
                    plan_.vector, legal, count_verb(legal, "is", "are")),
        site);
  }
  plan_.vector = std::min(plan_.vector, legal);
}

void PartData::State::spread(const TileGroup& group, SourceLocation site) {
  const std::size_t rank = grid_.tile.size();
  std::size_t fast = rank - 1;
  bool dense = false;
  for (std::size_t i = 0; i < rank; ++i) {
    if (!stride_of(i).is_constant() || stride_of(i).constant() != 1) continue;
    // Of several dense dims the one that the tile spans.
    if (!dense || grid_.tile[i] > grid_.tile[fast]) fast = i;
    dense = true;
  }
  plan_.tile = grid_.tile;
  plan_.threads = group.threads();
  plan_.vector = widest(fast);
  plan_.each = options_.each;
  plan_.order[0] = static_cast<std::uint8_t>(fast);
  std::size_t n = 1;
  for (std::size_t i = rank; i-- > 0;) {
    if (i != fast) plan_.order[n++] = static_cast<std::uint8_t>(i);
  }
  if (plan_.each.size() == 0) {
    plan_.each = Dims::filled(rank, 1);
    plan_.each[fast] = plan_.vector;
  }
  bool legal = plan_.each.size() == rank;
  for (std::size_t i = 0; legal && i < rank; ++i) {
    const std::int64_t part = plan_.each[i];
    legal =
        part > 0 && std::has_single_bit(static_cast<std::uint64_t>(part)) && part <= plan_.tile[i];
  }
  if (!legal) {
    builder().refuse("partition",
                     format_text("{} elements of a tile {} for each thread; rule: a thread has a "
                                 "power of two of elements along each dim, at most the tile's; "
                                 "cure: change the parts",
                                 plan_.each.text(), plan_.tile.text()),
                     site);
  }
  plan_.vector = std::min(plan_.vector, static_cast<std::uint32_t>(plan_.each[fast]));
}

// Traps where a number of the launch is not what the kernel was promised.
void PartData::State::check_promise(const Extent& extent, SourceLocation site) {
  KernelBuilder& k = builder();
  if (extent.is_constant()) return;
  const Known& known = extent.known();
  const auto trap_if = [&](Comparison how, const Value<u32>& value, std::uint32_t limit) {
    const Pred broken = k.setp(how, value, limit, false, site);
    k.if_(In<pred>(broken, site), [&] { k.trap(site); });
  };
  if (known.divisible_by > 1) {
    trap_if(Comparison::ne, k.rem(extent.value(), known.divisible_by, site), 0);
  }
  if (known.at_least > 0) trap_if(Comparison::lt, extent.value(), known.at_least);
  if (known.at_most < kMost32) trap_if(Comparison::gt, extent.value(), known.at_most);
}

void PartData::State::check_promises(SourceLocation site) {
  KernelBuilder& k = builder();
  for (std::size_t i = 0; i < grid_.tile.size(); ++i) {
    check_promise(size_of(i), site);
    check_promise(stride_of(i), site);
  }
  const std::uint64_t alignment = grid_.tensor.alignment;
  if (alignment <= grid_.tensor.bytes) return;
  const Value<u64> address = k.address_of(Ptr<b8, Global>(grid_.tensor.base), site);
  const Value<u64> low = k.and_(address, alignment - 1, site);
  const Pred misaligned = k.setp(Comparison::ne, low, 0, false, site);
  k.if_(In<pred>(misaligned, site), [&] { k.trap(site); });
}

void PartData::State::check_index(std::span<const Extent> index, SourceLocation site) {
  KernelBuilder& k = builder();
  for (std::size_t i = 0; i < index.size(); ++i) {
    if (index[i].is_constant()) continue;
    const Extent& size = size_of(i);
    const auto tile = static_cast<std::uint32_t>(grid_.tile[i]);
    const Pred outside =
        size.is_constant()
            ? k.setp(Comparison::ge, index[i].value(),
                     static_cast<std::uint32_t>((size.constant() + tile - 1) / tile), false, site)
            : [&] {
                const Value<u32> first = k.mul_lo(index[i].value(), tile, site);
                return k.setp(Comparison::ge, first, size.value(), false, site);
              }();
    k.if_(In<pred>(outside, site), [&] { k.trap(site); });
  }
}

void PartData::State::place_thread(const TileGroup& group, std::span<const Extent> index,
                                   SourceLocation site) {
  KernelBuilder& k = builder();
  const std::size_t rank = grid_.tile.size();
  const std::uint32_t all_bits = log2_of(plan_.threads);
  std::uint32_t bit = 0;
  for (std::size_t n = 0; n < rank; ++n) {
    const std::size_t dim = plan_.order[n];
    const std::uint32_t width = log2_of(plan_.tile[dim] / plan_.each[dim]);
    const std::uint32_t own = bit < all_bits ? std::min(width, all_bits - bit) : 0;
    within_[dim] = Extent(0);
    if (own != 0) {
      Value<u32> field = group.thread();
      if (bit != 0) field.rebind(k.shr(field, bit, site));
      if (bit + own < all_bits) field.rebind(k.and_(field, (1u << own) - 1, site));
      if (plan_.each[dim] != 1) field.rebind(k.shl(field, log2_of(plan_.each[dim]), site));
      within_[dim] = Extent(field);
    }
    bit += width;
  }
  partial_ = bit < all_bits;
  if (partial_) {
    member_.rebind(k.setp(Comparison::lt, group.thread(), 1u << bit, false, site));
  }
  for (std::size_t i = 0; i < rank; ++i) {
    const Extent& p = index[i];
    const auto tile = static_cast<std::uint32_t>(grid_.tile[i]);
    if (p.is_constant()) {
      const std::int64_t start = p.constant() * grid_.tile[i];
      tile_end_[i] = start + grid_.tile[i];
      if (p.constant() < 0 || start > std::int64_t{kMost32}) {
        k.refuse("out-of-bounds",
                 format_text("tile index {} in dim {}; rule: coordinates fit 32 bits; cure: name a "
                             "tile of the tensor",
                             p.constant(), i),
                 site);
      }
      if (within_[i].is_constant()) {
        first_[i] = Extent(start + within_[i].constant());
      } else {
        first_[i] =
            start == 0
                ? within_[i]
                : Extent(k.add(within_[i].value(), static_cast<std::uint32_t>(start), {}, site));
      }
    } else if (within_[i].is_constant()) {
      first_[i] = tile == 1 ? p : Extent(k.mul_lo(p.value(), tile, site));
    } else {
      first_[i] = Extent(k.mad_lo(p.value(), tile, within_[i].value(), site));
    }
  }
}

// ---- addresses

Value<u64> PartData::State::step_bytes(std::size_t dim, std::uint64_t count, SourceLocation site) {
  for (const Distance& known : distances_) {
    if (known.dim == dim && known.count == count) return known.bytes;
  }
  const Value<u64> bytes = builder().mul_wide(
      stride_of(dim).value(), static_cast<std::uint32_t>(count * grid_.tensor.bytes), site);
  distances_.push_back({dim, count, bytes});
  return bytes;
}

PointerData PartData::State::start(SourceLocation site) {
  KernelBuilder& k = builder();
  const unsigned bytes = grid_.tensor.bytes;
  PointerData pointer = grid_.tensor.base;
  pointer.alignment = 0;
  for (std::size_t i = 0; i < plan_.tile.size(); ++i) {
    const Extent& at = first_[i];
    const Extent& stride = stride_of(i);
    if (at.is_constant() && at.constant() == 0) continue;
    if (stride.is_constant() && stride.constant() == 0) continue;
    if (at.is_constant() && stride.is_constant()) {
      pointer = advance(pointer, Index(at.constant() * stride.constant(), site), 1, bytes, false);
    } else if (stride.is_constant() && stride.constant() * bytes <= std::int64_t{kMost32}) {
      pointer = advance(pointer, Index(at.value(), site), 1,
                        static_cast<unsigned>(stride.constant()) * bytes, false);
    } else if (at.is_constant() && at.constant() == 1) {
      pointer = advance(pointer, Index(stride.value(), site), 1, bytes, false);
    } else {
      const Value<u64> distance =
          at.is_constant()
              ? k.mul_wide(stride.value(), static_cast<std::uint32_t>(at.constant()), site)
          : stride.is_constant() ? k.mul_lo(k.cvt<u64>(at.value(), Convert{}, site),
                                            static_cast<std::uint64_t>(stride.constant()), site)
                                 : k.mul_wide(at.value(), stride.value(), site);
      pointer = advance(pointer, Index(distance, site), 1, bytes, false);
    }
  }
  pointer.alignment = 0;
  return pointer;
}

PointerData PartData::State::pointer_of(const Dims& offset, SourceLocation site) {
  // The part of dynamic strides; constant strides are folded into the access.
  Dims far = zeros(offset);
  std::int64_t near = 0;
  for (std::size_t i = 0; i < offset.size(); ++i) {
    if (stride_of(i).is_constant()) {
      near += offset[i] * stride_of(i).constant();
    } else {
      far[i] = offset[i];
    }
  }
  const auto finish = [&](const PointerData& pointer) {
    return advance(pointer, Index(near, site), 1, grid_.tensor.bytes, false);
  };
  for (const Moved& known : pointers_) {
    if (known.offset == far) return finish(known.pointer);
  }
  // From the pointer that was made last if it differs in one dim, else from the first.
  PointerData from = pointers_.empty() ? base_ : pointers_.front().pointer;
  Dims distance = far;
  if (!pointers_.empty()) {
    Dims last = far;
    int changed = 0;
    for (std::size_t i = 0; i < far.size(); ++i) {
      last[i] = far[i] - pointers_.back().offset[i];
      changed += last[i] != 0 ? 1 : 0;
    }
    if (changed == 1) {
      from = pointers_.back().pointer;
      distance = last;
    }
  }
  for (std::size_t i = 0; i < distance.size(); ++i) {
    if (distance[i] == 0) continue;
    const auto count = static_cast<std::uint64_t>(distance[i] < 0 ? -distance[i] : distance[i]);
    const int sign = distance[i] < 0 ? -1 : 1;
    if (count == 1) {
      from = advance(from, Index(stride_of(i).value(), site), sign, grid_.tensor.bytes, false);
    } else {
      from = advance(from, Index(step_bytes(i, count, site), site), sign, 1, false);
    }
  }
  pointers_.push_back({far, from});
  return finish(from);
}

// The distances that `pointer_of` will need from one access to the next.
void PartData::State::distances_between(const Dims& last, const Dims& offset, SourceLocation site) {
  int changed = 0;
  for (std::size_t i = 0; i < offset.size(); ++i) {
    changed += !stride_of(i).is_constant() && offset[i] != last[i] ? 1 : 0;
  }
  for (std::size_t i = 0; i < offset.size(); ++i) {
    const std::int64_t distance = changed == 1 ? offset[i] - last[i] : offset[i];
    if (stride_of(i).is_constant() || (distance >= -1 && distance <= 1)) continue;
    (void)step_bytes(i, static_cast<std::uint64_t>(distance < 0 ? -distance : distance), site);
  }
}

// ---- bounds

bool PartData::State::needs_check(std::size_t dim) const {
  const Extent& size = size_of(dim);
  // A neighbour of the tile may be outside of any tensor.
  if (shift_[dim] != 0) return true;
  if (tile_end_[dim] > 0 && options_.along != static_cast<int>(dim) &&
      size.known().at_least >= static_cast<std::uint64_t>(tile_end_[dim])) {
    return false;
  }
  return size.divisor() % static_cast<std::uint64_t>(plan_.tile[dim]) != 0;
}

// Sets p to `p and` the bound of one dim; false if no thread is inside.
bool PartData::State::bound_dim(std::size_t dim, std::int64_t offset, Pred& p, bool& has,
                                SourceLocation site) {
  KernelBuilder& k = builder();
  const Extent& size = size_of(dim);
  const bool moves = options_.along == static_cast<int>(dim);
  const Extent first = moves ? Extent(Value<u32>(&k, moving_[0].reg())) : first_[dim];
  if (first.is_constant() && size.is_constant()) {
    const std::int64_t at = first.constant() + offset;
    return at >= 0 && at < size.constant();
  }
  const ptx::Register with = has ? In<pred>(p, site).operand.as_register() : ptx::Register{};
  for (std::vector<Bound>* list : {&fixed_bounds_, &bounds_}) {
    for (const Bound& known : *list) {
      if (known.dim != dim || known.offset != offset || !(known.with == with)) continue;
      p.rebind(known.in_range);
      has = true;
      return true;
    }
  }
  // Coordinates below 0 wrap around and are beyond the size too.
  const auto moved = static_cast<std::uint32_t>(offset);
  const Value<u32> at =
      first.is_constant()
          ? k.constant<u32>(static_cast<std::uint32_t>(first.constant()) + moved, site)
      : offset == 0 ? first.value()
                    : k.add(first.value(), moved, {}, site);
  const auto compare = [&](const auto& limit) {
    return has ? k.setp(Comparison::lt, ptx::Modifier::and_, at, limit, p, site)
               : k.setp(Comparison::lt, at, limit, false, site);
  };
  const Pred inside = size.is_constant() ? compare(static_cast<std::uint32_t>(size.constant()))
                                         : compare(size.value());
  bounds_.push_back({dim, offset, with, inside});
  p.rebind(inside);
  has = true;
  return true;
}

void PartData::State::range(TilePlace& place, SourceLocation site) {
  if (partial_) {
    place.in_range.rebind(member_);
    place.guarded = true;
  }
  // The dim that moves last, so that what came before it is computed once.
  std::vector<std::size_t> dims(
      plan_.order.begin(), plan_.order.begin() + static_cast<std::ptrdiff_t>(plan_.tile.size()));
  const auto along = static_cast<std::size_t>(options_.along);
  if (options_.along >= 0) {
    dims.erase(std::find(dims.begin(), dims.end(), along));
    dims.push_back(along);
  }
  for (const std::size_t dim : dims) {
    if (!needs_check(dim)) continue;
    if (!bound_dim(dim, place.offset[dim], place.in_range, place.guarded, site)) {
      place.never = true;
      return;
    }
  }
}

// What is computed once, where the part is made.
void PartData::State::prepare(SourceLocation site) {
  KernelBuilder& k = builder();
  const bool moves = options_.along >= 0;
  const auto along = static_cast<std::size_t>(options_.along);
  base_ = start(site);
  if (moves) {
    moving_.push_back(first_[along].is_constant()
                          ? k.var<u32>(static_cast<std::uint32_t>(first_[along].constant()), site)
                          : k.var(first_[along].value(), site));
    moving_base_.push_back(k.var(Ptr<b8, Global>(base_), site));
    base_ = moving_base_[0].view().data();
    if (!stride_of(along).is_constant()) {
      (void)step_bytes(along, static_cast<std::uint64_t>(plan_.tile[along]), site);
    }
  }
  Dims last = zeros(plan_.tile);
  for (const Dims& offset : plan_.offsets()) {
    if (moves) distances_between(last, offset, site);
    last = offset;
    TilePlace place;
    place.offset = offset;
    if (partial_) {
      place.in_range.rebind(member_);
      place.guarded = true;
    }
    for (std::size_t n = 0; n < offset.size(); ++n) {
      const std::size_t dim = plan_.order[n];
      if ((moves && dim == along) || !needs_check(dim)) continue;
      if (!bound_dim(dim, offset[dim], place.in_range, place.guarded, site)) break;
    }
  }
  for (const Bound& bound : bounds_) fixed_bounds_.push_back(bound);
  fixed_distances_ = distances_.size();
}

std::vector<TilePlace> PartData::State::places(const Dims& shift, SourceLocation site) {
  // What an earlier call emitted may be in a body that is closed by now.
  shift_ = shift;
  bounds_.clear();
  pointers_.clear();
  while (distances_.size() > fixed_distances_) distances_.pop_back();
  pointers_.push_back({zeros(plan_.tile), base_});
  std::vector<TilePlace> all;
  for (const Dims& offset : plan_.offsets()) {
    TilePlace place;
    place.offset = offset;
    for (std::size_t i = 0; i < offset.size(); ++i) place.offset[i] += shift[i];
    range(place, site);
    if (!place.never) place.pointer = pointer_of(place.offset, site);
    place.pointer.core = &builder();
    place.offset = offset;
    all.push_back(place);
  }
  return all;
}

void PartData::State::next(SourceLocation site) {
  KernelBuilder& k = builder();
  if (options_.along < 0) {
    k.refuse(
        "partition",
        "next() of a part that stays; rule: TileOptions::along names the dim that a part moves "
        "along; cure: set it",
        site);
  }
  const auto along = static_cast<std::size_t>(options_.along);
  const auto tile = static_cast<std::uint32_t>(plan_.tile[along]);
  k.add_inplace(moving_[0], tile, {}, site);
  const Extent& stride = stride_of(along);
  if (stride.is_constant()) {
    moving_base_[0] += Index(stride.constant() * std::int64_t{tile} * grid_.tensor.bytes, site);
  } else {
    moving_base_[0] += Index(step_bytes(along, tile, site), site);
  }
}

// ---- shared memory

void PartData::State::bind(const SharedTileData& shared, SourceLocation site) {
  KernelBuilder& k = builder();
  const std::size_t rank = plan_.tile.size();
  std::int64_t rows = 1;
  for (std::size_t i = 0; i + 1 < rank; ++i) rows *= plan_.tile[i];
  const std::int64_t columns = plan_.tile[rank - 1];
  const std::int64_t has_rows = shared.transposed ? shared.columns : shared.rows;
  const std::int64_t has_columns = shared.transposed ? shared.rows : shared.columns;
  if (rows != has_rows || columns != has_columns) {
    k.refuse("partition",
             format_text("a tile {} and a shared tile [{}, {}]; rule: both have the same shape; "
                         "cure: make the shared tile of the tile's shape",
                         plan_.tile.text(), has_rows, has_columns),
             site);
  }
  // Leading dims are rows.
  Extent row = rank == 1 ? Extent(0) : within_[0];
  for (std::size_t i = 1; i + 1 < rank; ++i) {
    const auto count = static_cast<std::uint32_t>(plan_.tile[i]);
    if (row.is_constant() && within_[i].is_constant()) {
      row = Extent(row.constant() * count + within_[i].constant());
    } else if (row.is_constant()) {
      row = row.constant() == 0
                ? within_[i]
                : Extent(k.add(within_[i].value(),
                               static_cast<std::uint32_t>(row.constant()) * count, {}, site));
    } else if (within_[i].is_constant()) {
      row = Extent(
          k.mad_lo(row.value(), count, static_cast<std::uint32_t>(within_[i].constant()), site));
    } else {
      row = Extent(k.mad_lo(row.value(), count, within_[i].value(), site));
    }
  }
  shared_ = shared;
  cursor_.clear();
  cursor_.emplace_back(shared, row, within_[rank - 1], site);
}

bool PartData::State::shared_vectors() const noexcept {
  const std::size_t last = plan_.tile.size() - 1;
  return !shared_.transposed && plan_.order[0] == last &&
         shared_.placement.pitch % plan_.vector == 0 &&
         (shared_.placement.mask == 0 || shared_.placement.group >= plan_.vector);
}

PointerData PartData::State::shared_at(const Dims& offset, std::uint32_t n, SourceLocation site) {
  if (cursor_.empty()) {
    builder().refuse("partition",
                     "a part without a shared tile is staged; rule: bind() names the shared tile; "
                     "cure: call it in front of the loop",
                     site);
  }
  Dims at = offset;
  at[plan_.order[0]] += n;
  std::uint32_t row = 0;
  for (std::size_t i = 0; i + 1 < at.size(); ++i) {
    row = row * static_cast<std::uint32_t>(plan_.tile[i]) + static_cast<std::uint32_t>(at[i]);
  }
  return cursor_[0].at(row, static_cast<std::uint32_t>(at[at.size() - 1]), site);
}

// ---- what the header knows

void emit_access(KernelBuilder& k, bool store, ptx::Modifier space, const Operand& pointer,
                 std::span<const Operand> elements, ptx::Type type, const Load& how,
                 SourceLocation site) {
  ModifierList modifiers;
  if (!store) {
    modifiers.add(how.cache);
    modifiers.add_if(how.read_only, ptx::Modifier::nc);
    modifiers.add(how.l1);
    modifiers.add(how.prefetch);
  }
  modifiers.add(space);
  if (elements.size() == 2) modifiers.add(ptx::Modifier::v2);
  if (elements.size() == 4) modifiers.add(ptx::Modifier::v4);
  modifiers.add(type);
  const Operand data = elements.size() == 1 ? elements[0] : Operand(Vec(elements));
  const Operand operands[] = {store ? pointer : data, store ? data : pointer};
  k.emit(store           ? ptx::Op::st
         : how.read_only ? ptx::Op::ld_nc
                         : ptx::Op::ld,
         std::span<const ptx::Modifier>(modifiers.values.data(), modifiers.count), operands, site);
}

PartData::PartData(const TileGroup& group, const GridData& grid, std::span<const Extent> index,
                   const TileOptions& options, SourceLocation site)
    : state_(Hidden<State>::make(group, grid, index, options, site)) {}
PartData::PartData(const PartData& other, const GridData& grid, SourceLocation site)
    : state_(Hidden<State>::make(*other.state_, grid, site)) {}
std::vector<TilePlace> PartData::places(const Dims& shift, SourceLocation site) {
  return state_->places(shift, site);
}
void PartData::next(SourceLocation site) { state_->next(site); }
void PartData::bind(const SharedTileData& shared, SourceLocation site) {
  state_->bind(shared, site);
}
const SpreadPlan& PartData::plan() const noexcept { return state_->plan(); }
const GridData& PartData::grid() const noexcept { return state_->grid(); }
const Extent& PartData::first(std::size_t dim) const noexcept { return state_->first(dim); }
const TileOptions& PartData::options() const noexcept { return state_->options(); }
bool PartData::partial() const noexcept { return state_->partial(); }
const Pred& PartData::member() const noexcept { return state_->member(); }
PointerData PartData::shared_at(const Dims& offset, std::uint32_t n, SourceLocation site) {
  return state_->shared_at(offset, n, site);
}
bool PartData::shared_vectors() const noexcept { return state_->shared_vectors(); }

}  // namespace detail
}  // namespace ptxgen::inline v0
