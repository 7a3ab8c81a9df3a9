// ptxgen/builder/tile.hpp - tiles of tensors in kernels
#pragma once

#include "ptxgen/support/language.hpp"

#include <array>
#include <bit>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "ptxgen/builder/tensor_view.hpp"
#include "ptxgen/support/hidden.hpp"
#include "ptxgen/tile/access.hpp"

// Not part of ptxgen/builder.hpp. A kernel says which tile it loads; bounds, padding, vector width,
// addresses and placement in shared memory follow. The rules of views are those of the host
// (ptxgen/tile/view.hpp); docs/tiles.md is the guide.

namespace ptxgen::inline v0 {

/// The threads that work on tiles together. All of them make every call.
class TileGroup {
  using Site = SourceLocation;

 public:
  /// A block of exactly `threads` threads in one dimension: a power of two from 32 to 1024.
  [[nodiscard]] static TileGroup block(KernelBuilder& k, std::uint32_t threads,
                                       Site site = Site::current());
  /// The 32 lanes of a warp.
  [[nodiscard]] static TileGroup warp(KernelBuilder& k, Site site = Site::current());

  /// Waits for copies that were staged asynchronously, then for the other threads of the group.
  void sync(Site site = Site::current());

  [[nodiscard]] KernelBuilder& builder() const noexcept { return *k_; }
  [[nodiscard]] std::uint32_t threads() const noexcept { return threads_; }
  /// The thread's number in the group.
  [[nodiscard]] const Value<u32>& thread() const noexcept { return thread_; }
  void note_async() noexcept { async_ = true; }

 private:
  TileGroup(KernelBuilder& k, std::uint32_t threads, bool block, const Value<u32>& thread)
      : k_(&k), thread_(thread), threads_(threads), block_(block) {}

  KernelBuilder* k_;
  Value<u32> thread_;
  std::uint32_t threads_;
  bool block_;
  bool async_ = false;
};

/// How a tile is spread over the threads of a group.
struct TileOptions {
  /// Elements of a thread along each tile dim, powers of two; threads follow each other first along
  /// the dim that is dense in memory. Empty: one access of the widest legal vector, again and
  /// again.
  Dims each{};
  /// The tile dim that `next()` moves along.
  int along = -1;
  /// Traps where the index is outside of the tiles, and where a size, a stride or the alignment is
  /// not what was promised.
  bool check = false;
  /// Modifiers of the loads.
  Load load{};
};

/// How `TilePart::reduce` combines.
enum class TileReduction : std::uint8_t { Add, Min, Max, And, Or, Xor };

/// How a tile comes into shared memory.
enum class Staging : std::uint8_t {
  Registers,  ///< a load and a store
  Async,      ///< cp.async where the target and the element's width have it
};

namespace detail {

/// Where one thread's accesses of a tile are; by tile dim. On the host, for any thread.
struct SpreadPlan {
  Dims tile, each;
  std::array<std::uint8_t, kMaxRank> order{};  ///< dims, the one of neighbouring threads first
  std::uint32_t threads = 32;
  std::uint32_t vector = 1;  ///< elements of one access, along order[0]

  /// Threads that have elements.
  [[nodiscard]] std::uint64_t members() const noexcept;
  /// Offsets of all accesses of a thread from its first.
  [[nodiscard]] std::vector<Dims> offsets() const;
  /// The first element of a thread.
  [[nodiscard]] Dims first(std::uint32_t thread) const noexcept;
};

/// One access: its place in the tile relative to the thread's first, and what was emitted for it.
struct TilePlace {
  Dims offset;
  PointerData pointer;
  Pred in_range{nullptr, ptx::Register{}};
  bool guarded = false;  ///< by `in_range`
  bool never = false;    ///< outside of the tensor for every thread
};

/// A pointer into a shared tile and how many neighbours it reaches.
struct SharedTileData {
  KernelBuilder* k = nullptr;
  PointerData base;
  tile::Placement placement;
  std::uint32_t rows = 1, columns = 1, bytes = 4;
  bool transposed = false;  ///< rows and columns exchanged
};
/// Addresses of elements of a shared tile at constant offsets from a thread's element.
class SharedCursor {
 public:
  SharedCursor(const SharedTileData& tile, const Extent& row, const Extent& column,
               SourceLocation site);
  /// The element at (row, column) further; their bits do not overlap the thread's.
  [[nodiscard]] PointerData at(std::uint32_t row, std::uint32_t column, SourceLocation site);

 private:
  SharedTileData tile_;
  PointerData plain_;
  Value<u32> row_base_{nullptr, ptx::Register{}};
  Value<u32> exchanged_{nullptr, ptx::Register{}};
  std::vector<std::pair<std::uint32_t, PointerData>> known_;
};

/// A thread's part of a tile, without its element type.
class PartData {
 public:
  PartData(const TileGroup& group, const GridData& grid, std::span<const Extent> index,
           const TileOptions& options, SourceLocation site);
  /// At the place of another part, in another tensor.
  PartData(const PartData& other, const GridData& grid, SourceLocation site);
  /// Emits addresses and predicates of all accesses, moved by `shift` (by tile dim).
  [[nodiscard]] std::vector<TilePlace> places(const Dims& shift, SourceLocation site);
  void next(SourceLocation site);
  void bind(const SharedTileData& shared, SourceLocation site);
  [[nodiscard]] const SpreadPlan& plan() const noexcept;
  [[nodiscard]] const GridData& grid() const noexcept;
  [[nodiscard]] const Extent& first(std::size_t dim) const noexcept;
  [[nodiscard]] KernelBuilder& builder() const noexcept { return *grid().tensor.k; }
  [[nodiscard]] const TileOptions& options() const noexcept;
  /// Whether only some threads have elements, and which.
  [[nodiscard]] bool partial() const noexcept;
  [[nodiscard]] const Pred& member() const noexcept;
  /// Where element `n` of an access is in the bound shared tile, and whether the access is a
  /// vector there.
  [[nodiscard]] PointerData shared_at(const Dims& offset, std::uint32_t n, SourceLocation site);
  [[nodiscard]] bool shared_vectors() const noexcept;

 private:
  class State;
  Hidden<State> state_;
};

template <class T>
[[nodiscard]] Value<T> padding_value(KernelBuilder& k, Padding padding, SourceLocation site) {
  constexpr std::uint64_t kSign = std::uint64_t{1} << (T::kBits - 1);
  constexpr unsigned kMantissa = kSame<T, f64> ? 52 : kSame<T, f32> ? 23 : kSame<T, bf16> ? 7 : 10;
  constexpr std::uint64_t kInfinity = (kSign - 1) >> kMantissa << kMantissa;
  const std::uint64_t bits = padding == Padding::NegativeZero       ? kSign
                             : padding == Padding::NaN              ? kSign - 1
                             : padding == Padding::PositiveInfinity ? kInfinity
                             : padding == Padding::NegativeInfinity ? kSign | kInfinity
                                                                    : 0;
  if constexpr (kSame<T, f32>) {
    return k.mov(In<f32>(std::bit_cast<float>(static_cast<std::uint32_t>(bits)), site), site);
  } else if constexpr (kSame<T, f64>) {
    return k.mov(In<f64>(std::bit_cast<double>(bits), site), site);
  } else if constexpr (T::kBits == 64) {
    return k.template bitcast<T>(k.template constant<u64>(bits, site), site);
  } else if constexpr (T::kBits == 32) {
    return k.template bitcast<T>(k.template constant<u32>(bits, site), site);
  } else if constexpr (T::kBits == 16) {
    return k.template bitcast<T>(k.template constant<u16>(bits, site), site);
  } else {
    static_assert(T::kBits == 8, "tiles with padding have elements of 8 to 64 bits");
    // `mov` has no 8-bit types.
    return k.template cvt<T>(k.template constant<u16>(bits, site), {}, site);
  }
}

/// A value, or what a variable holds where it is used.
template <class T>
[[nodiscard]] Value<T> stored_value(const Value<T>& value) noexcept {
  return value;
}
template <class T>
[[nodiscard]] Value<T> stored_value(const Var<T>& variable) noexcept {
  return {variable.core(), variable.reg()};
}

/// A load or store of `elements`, which are destinations or sources.
void emit_access(KernelBuilder& k, bool store, ptx::Modifier space, const Operand& pointer,
                 std::span<const Operand> elements, ptx::Type type, const Load& how,
                 SourceLocation site);

/// An access of neighbouring elements T. PTX has no vectors of eight elements of 16 bits: they are
/// four words of 32 bits, each packed or unpacked by a move.
template <class T>
void access(KernelBuilder& k, bool store, ptx::Modifier space, const Operand& pointer,
            std::span<const Value<T>> values, const Load& how, SourceLocation site) {
  std::vector<Operand> elements;
  for (const Value<T>& value : values) elements.emplace_back(value, site);
  if (T::kBits != 16 || values.size() != 8) {
    emit_access(k, store, space, pointer, elements, T::kMemoryType, how, site);
    return;
  }
  std::vector<Value<u32>> words;
  std::vector<Operand> all;
  for (std::size_t i = 0; i < 4; ++i) {
    words.push_back(k.template undefined<u32>(site));
    all.emplace_back(words[i], site);
  }
  const auto move = [&](std::size_t i) {
    const Operand pair(Vec(std::span<const Operand>(elements).subspan(2 * i, 2)));
    const Operand operands[] = {store ? all[i] : pair, store ? pair : all[i]};
    const ptx::Modifier type[] = {ptx::Modifier::type_b32};
    k.emit(store ? ptx::Op::mov_pack_b32_2 : ptx::Op::mov_unpack_b32_2,
           std::span<const ptx::Modifier>(type), operands, site);
  };
  for (std::size_t i = 0; store && i < 4; ++i) move(i);
  emit_access(k, store, space, pointer, all, ptx::Type::b32, how, site);
  for (std::size_t i = 0; !store && i < 4; ++i) move(i);
}

[[nodiscard]] SharedTileData make_shared_tile(KernelBuilder& k, const PointerData& base,
                                              const Dims& shape, std::uint32_t bytes,
                                              const tile::Placement& placement);
/// The accesses of a group to a shared tile, for its placement.
[[nodiscard]] std::vector<tile::WarpAccess> shared_accesses(const SpreadPlan& plan, bool transposed,
                                                            std::uint32_t element_bytes);
[[nodiscard]] tile::PlacementChoice choose(const Dims& shape, std::uint32_t bytes,
                                           std::span<const tile::WarpAccess> accesses);
/// Emits cp.async of `bytes` bytes, zeros where `p` does not hold.
void stage_async(KernelBuilder& k, const PointerData& to, const PointerData& from,
                 std::uint32_t bytes, const TilePlace& place, SourceLocation site);

}  // namespace detail

/// A tile of rank 1 or 2 in shared memory (of higher ranks the leading dims are rows). Its rows are
/// placed so that the accesses of `uses` have the fewest bank conflicts; `text()` says how.
template <class T>
class SharedTile {
  using Site = SourceLocation;

 public:
  using Uses = std::initializer_list<std::vector<tile::WarpAccess>>;

  SharedTile(KernelBuilder& k, const Dims& shape, Uses uses = {}, Site site = Site::current())
      : SharedTile(k, shape, chosen(shape, uses), site) {}

  /// Rows and columns exchanged: the same memory.
  [[nodiscard]] SharedTile transpose() const {
    SharedTile other = *this;
    other.data_.transposed = !data_.transposed;
    return other;
  }
  /// The first element; elements follow each other along a row.
  [[nodiscard]] Ptr<T, Shared> base() const { return Ptr<T, Shared>(data_.base); }
  [[nodiscard]] const tile::PlacementChoice& choice() const noexcept { return choice_; }
  [[nodiscard]] const std::string& text() const noexcept { return choice_.text; }
  [[nodiscard]] const detail::SharedTileData& data() const noexcept { return data_; }

 private:
  SharedTile(KernelBuilder& k, const Dims& shape, tile::PlacementChoice choice, Site site)
      : choice_(static_cast<tile::PlacementChoice&&>(choice)),
        data_(detail::make_shared_tile(
            k, k.shared<T>(choice_.bytes / T::kBytes, {}, 16, site).base().data(), shape, T::kBytes,
            choice_.placement)) {}
  static tile::PlacementChoice chosen(const Dims& shape, Uses uses) {
    std::vector<tile::WarpAccess> all;
    for (const auto& use : uses) all.insert(all.end(), use.begin(), use.end());
    return detail::choose(shape, T::kBytes, all);
  }

  tile::PlacementChoice choice_;
  detail::SharedTileData data_;
};

/// The elements of a tile that a thread has, in the order of its accesses.
template <class T>
using RegisterTile = std::vector<Value<T>>;

/// A thread's part of one tile: what it loads, stores and stages. All threads of the group make the
/// calls. Elements that the tensor does not have give the padding, and are not stored.
template <class T>
class TilePart {
  using Site = SourceLocation;

 public:
  /// `index` names the tile: u32 values or C++ integers, one for each dim.
  TilePart(TileGroup& group, const TileGrid<T>& tiles, detail::Extents index,
           const TileOptions& options = {}, Site site = Site::current())
      : group_(&group), part_(group, tiles.data(), index.all, options, site) {}

  /// The same place of another tensor that is cut in the same way: coordinates and, where the
  /// sizes are the same, bounds are not computed again.
  [[nodiscard]] TilePart of(const TileGrid<T>& tiles, Site site = Site::current()) const {
    return TilePart(group_, detail::PartData(part_, tiles.data(), site));
  }

  /// The coordinate of the thread's first element in dim `dim` of the tile.
  [[nodiscard]] Value<u32> first(std::size_t dim, Site site = Site::current()) const {
    const Extent& at = part_.first(dim);
    return at.is_constant()
               ? k().template constant<u32>(static_cast<std::uint32_t>(at.constant()), site)
               : at.value();
  }
  /// `body`, executed where the tensor has the thread's first element.
  template <class Body>
  void if_in_range(Body&& body, Site site = Site::current()) {
    const detail::TilePlace place =
        part_.places(Dims::filled(part_.plan().tile.size(), 0), site).front();
    if (place.never) return;
    if (place.guarded) {
      k().if_(In<pred>(place.in_range, site), body);
    } else {
      body();
    }
  }

  /// Into registers.
  [[nodiscard]] RegisterTile<T> load(Site site = Site::current()) {
    return load_shifted(Dims::filled(part_.plan().tile.size(), 0), site);
  }
  /// The elements that are `shift` further, by tile dim, negative ones too: a stencil's neighbours.
  [[nodiscard]] RegisterTile<T> load_shifted(const Dims& shift, Site site = Site::current()) {
    RegisterTile<T> all;
    for (const detail::TilePlace& place : part_.places(shift, site)) load_place(place, all, site);
    return all;
  }
  /// From registers, as `load` gives them; `values` may be variables.
  template <class Values>
  void store(const Values& values, Site site = Site::current()) {
    static_assert(detail::kSame<detail::ElementOf<std::remove_cvref_t<decltype(values[0])>>, T>,
                  "a tile stores values or variables of its own element type");
    check_stored("store_tile", values.size(), site);
    std::size_t n = 0;
    for (const detail::TilePlace& place :
         part_.places(Dims::filled(part_.plan().tile.size(), 0), site)) {
      RegisterTile<T> some;
      for (std::uint32_t i = 0; i < part_.plan().vector; ++i) {
        some.push_back(detail::stored_value(values[n + i]));
      }
      n += part_.plan().vector;
      store_place(place, some, site);
    }
  }

  /// Combines the tensor's elements with values as `store` takes them: `red.relaxed` of a scope,
  /// one for each element.
  template <TileReduction kHow, class Values>
  void reduce(const Values& values, Scope scope, Site site = Site::current()) {
    static_assert(detail::kSame<detail::ElementOf<std::remove_cvref_t<decltype(values[0])>>, T>,
                  "a tile is combined with values or variables of its own element type");
    check_stored("reduce_tile", values.size(), site);
    std::size_t n = 0;
    for (const detail::TilePlace& place :
         part_.places(Dims::filled(part_.plan().tile.size(), 0), site)) {
      for (std::uint32_t i = 0; i < part_.plan().vector; ++i, ++n) {
        reduce_place<kHow>(place, i, detail::stored_value(values[n]), scope, site);
      }
    }
  }

  /// The accesses of `load` and `store_from` to a shared tile, for its placement.
  [[nodiscard]] std::vector<tile::WarpAccess> use(bool transposed = false) const {
    return detail::shared_accesses(part_.plan(), transposed, T::kBytes);
  }
  /// Names the shared tile that `stage` fills and `unstage` empties; in front of a loop, its
  /// addresses are computed once.
  TilePart& bind(const SharedTile<T>& shared, Site site = Site::current()) {
    part_.bind(shared.data(), site);
    return *this;
  }
  /// A shared tile of the tile's shape, bound: for those who read it along its rows.
  [[nodiscard]] SharedTile<T> make_shared(Site site = Site::current()) {
    const SharedTile<T> shared(k(), part_.plan().tile, {use()}, site);
    bind(shared, site);
    return shared;
  }
  /// Copies the tile into the shared tile. `TileGroup::sync` makes it visible.
  void stage(Staging staging = Staging::Registers, Site site = Site::current());
  /// Copies the shared tile into the tensor.
  void unstage(Site site = Site::current());

  /// Moves to the next tile along `TileOptions::along`.
  void next(Site site = Site::current()) { part_.next(site); }

  /// Elements of one access.
  [[nodiscard]] std::uint32_t vector_elements() const noexcept { return part_.plan().vector; }
  [[nodiscard]] const detail::SpreadPlan& plan() const noexcept { return part_.plan(); }

 private:
  TilePart(TileGroup* group, detail::PartData part)
      : group_(group), part_(static_cast<detail::PartData&&>(part)) {}
  [[nodiscard]] KernelBuilder& k() const noexcept { return part_.builder(); }
  void check_stored(const char* what, std::size_t count, Site site);
  template <TileReduction kHow>
  void reduce_place(const detail::TilePlace& place, std::uint32_t element, const Value<T>& value,
                    Scope scope, Site site);
  void load_place(const detail::TilePlace& place, RegisterTile<T>& all, Site site);
  void store_place(const detail::TilePlace& place, const RegisterTile<T>& values, Site site);
  void to_shared(const detail::TilePlace& place, const RegisterTile<T>& values, Site site);
  [[nodiscard]] RegisterTile<T> from_shared(const detail::TilePlace& place, Site site);

  TileGroup* group_;
  detail::PartData part_;
};

template <class T>
void TilePart<T>::check_stored(const char* what, std::size_t count, Site site) {
  if (part_.grid().tensor.layout.read_only() ||
      part_.grid().tensor.layout.overlap() == Overlap::Some) {
    try {
      part_.grid().tensor.layout.require_writable(what);
    } catch (const Error& error) {
      k().refuse(error.code, error.message, site);
    }
  }
  if (count == part_.plan().offsets().size() * part_.plan().vector) return;
  k().refuse(
      "partition",
      "a thread has " + std::to_string(part_.plan().offsets().size() * part_.plan().vector) +
          " elements of the tile, and " + std::to_string(count) +
          " are stored; rule: a store takes what a load gives; cure: pass one value for each "
          "element",
      site);
}

template <class T>
void TilePart<T>::load_place(const detail::TilePlace& place, RegisterTile<T>& all, Site site) {
  const std::size_t first = all.size();
  const Padding padding = part_.grid().padding;
  const bool fill = (place.guarded && padding != Padding::None) || place.never;
  for (std::uint32_t i = 0; i < part_.plan().vector; ++i) {
    all.push_back(fill ? detail::padding_value<T>(k(), padding, site)
                       : k().template undefined<T>(site));
  }
  if (place.never) return;
  const Operand pointer(Ptr<T>(place.pointer), site);
  const std::span<const Value<T>> values(all.data() + first, part_.plan().vector);
  const auto load = [&] {
    detail::access<T>(k(), false, ptx::Modifier::global, pointer, values, part_.options().load,
                      site);
  };
  if (place.guarded) {
    k().guarded(In<pred>(place.in_range, site), load);
  } else {
    load();
  }
}

template <class T>
void TilePart<T>::store_place(const detail::TilePlace& place, const RegisterTile<T>& values,
                              Site site) {
  if (place.never) return;
  const Operand pointer(Ptr<T>(place.pointer), site);
  const auto store = [&] {
    detail::access<T>(k(), true, ptx::Modifier::global, pointer, values, {}, site);
  };
  if (place.guarded) {
    k().guarded(In<pred>(place.in_range, site), store);
  } else {
    store();
  }
}

template <class T>
template <TileReduction kHow>
void TilePart<T>::reduce_place(const detail::TilePlace& place, std::uint32_t element,
                               const Value<T>& value, Scope scope, Site site) {
  if (place.never) return;
  const Ptr<T> at = Ptr<T>(place.pointer) + static_cast<int>(element);
  const Atomic how{Order::relaxed, scope};
  const auto reduce = [&] {
    if constexpr (kHow == TileReduction::Add) k().red_add(at, value, how, site);
    if constexpr (kHow == TileReduction::Min) k().red_min(at, value, how, site);
    if constexpr (kHow == TileReduction::Max) k().red_max(at, value, how, site);
    if constexpr (kHow == TileReduction::And) k().red_and(at, value, how, site);
    if constexpr (kHow == TileReduction::Or) k().red_or(at, value, how, site);
    if constexpr (kHow == TileReduction::Xor) k().red_xor(at, value, how, site);
  };
  if (place.guarded) {
    k().guarded(In<pred>(place.in_range, site), reduce);
  } else {
    reduce();
  }
}

template <class T>
void TilePart<T>::to_shared(const detail::TilePlace& place, const RegisterTile<T>& values,
                            Site site) {
  const std::uint32_t width = part_.shared_vectors() ? part_.plan().vector : 1;
  for (std::uint32_t i = 0; i < part_.plan().vector; i += width) {
    const Operand pointer(Ptr<T, Shared>(part_.shared_at(place.offset, i, site)), site);
    const std::span<const Value<T>> some(values.data() + i, width);
    const auto store = [&] {
      detail::access<T>(k(), true, ptx::Modifier::shared, pointer, some, {}, site);
    };
    // Without padding nothing is known of elements outside: they stay as they are.
    if (place.guarded && part_.grid().padding == Padding::None) {
      k().guarded(In<pred>(place.in_range, site), store);
    } else if (part_.partial()) {
      k().guarded(In<pred>(part_.member(), site), store);
    } else {
      store();
    }
  }
}

template <class T>
RegisterTile<T> TilePart<T>::from_shared(const detail::TilePlace& place, Site site) {
  RegisterTile<T> values;
  const std::uint32_t width = part_.shared_vectors() ? part_.plan().vector : 1;
  for (std::uint32_t i = 0; i < part_.plan().vector; ++i) {
    values.push_back(k().template undefined<T>(site));
  }
  for (std::uint32_t i = 0; i < part_.plan().vector; i += width) {
    const Operand pointer(Ptr<T, Shared>(part_.shared_at(place.offset, i, site)), site);
    const std::span<const Value<T>> some(values.data() + i, width);
    const auto load = [&] {
      detail::access<T>(k(), false, ptx::Modifier::shared, pointer, some, {}, site);
    };
    if (place.guarded) {
      k().guarded(In<pred>(place.in_range, site), load);
    } else {
      load();
    }
  }
  return values;
}

template <class T>
void TilePart<T>::stage(Staging staging, Site site) {
  const std::vector<detail::TilePlace> places =
      part_.places(Dims::filled(part_.plan().tile.size(), 0), site);
  const std::uint32_t bytes = part_.plan().vector * T::kBytes;
  const bool async = staging == Staging::Async && k().target().sm >= 80 && bytes >= 4 &&
                     (part_.shared_vectors() || part_.plan().vector == 1) && !part_.partial() &&
                     part_.grid().padding <= Padding::Zero;
  if (async) {
    for (const detail::TilePlace& place : places) {
      detail::stage_async(k(), part_.shared_at(place.offset, 0, site), place.pointer, bytes, place,
                          site);
    }
    group_->note_async();
    return;
  }
  // All loads before the first store, so that they are on their way together.
  std::vector<RegisterTile<T>> loaded;
  for (const detail::TilePlace& place : places) {
    loaded.emplace_back();
    load_place(place, loaded.back(), site);
  }
  for (std::size_t i = 0; i < places.size(); ++i) to_shared(places[i], loaded[i], site);
}

template <class T>
void TilePart<T>::unstage(Site site) {
  check_stored("store_tile", part_.plan().offsets().size() * part_.plan().vector, site);
  const std::vector<detail::TilePlace> places =
      part_.places(Dims::filled(part_.plan().tile.size(), 0), site);
  std::vector<RegisterTile<T>> loaded;
  for (const detail::TilePlace& place : places) loaded.push_back(from_shared(place, site));
  for (std::size_t i = 0; i < places.size(); ++i) store_place(places[i], loaded[i], site);
}

// In one call, for a tile that is loaded or stored once.
template <class T>
[[nodiscard]] RegisterTile<T> load_tile(TileGroup& group, const TileGrid<T>& tiles,
                                        detail::Extents index, const TileOptions& options = {},
                                        SourceLocation site = SourceLocation::current()) {
  return TilePart<T>(group, tiles, index, options, site).load(site);
}
template <class T>
void load_tile(TileGroup& group, const TileGrid<T>& tiles, detail::Extents index,
               const SharedTile<T>& to, Staging staging = Staging::Registers,
               SourceLocation site = SourceLocation::current()) {
  TilePart<T>(group, tiles, index, {}, site).bind(to, site).stage(staging, site);
}
template <class T, class Values>
void store_tile(TileGroup& group, const TileGrid<T>& tiles, detail::Extents index,
                const Values& values, const TileOptions& options = {},
                SourceLocation site = SourceLocation::current()) {
  TilePart<T>(group, tiles, index, options, site).store(values, site);
}
template <class T>
void store_tile(TileGroup& group, const TileGrid<T>& tiles, detail::Extents index,
                const SharedTile<T>& from, SourceLocation site = SourceLocation::current()) {
  TilePart<T>(group, tiles, index, {}, site).bind(from, site).unstage(site);
}

namespace detail {

/// Where the threads of a product are in its tile [rows x columns].
[[nodiscard]] SpreadPlan product_plan(const TileGroup& group, const Dims& shape, const Dims& each,
                                      SourceLocation site);
[[nodiscard]] std::vector<tile::WarpAccess> product_use(const SpreadPlan& plan, std::uint32_t depth,
                                                        bool rows);
void check_product(KernelBuilder& k, const SpreadPlan& plan, std::uint32_t depth,
                   const SharedTileData& a, const SharedTileData& b, SourceLocation site);
[[nodiscard]] std::array<Extent, 2> product_place(const TileGroup& group, const SpreadPlan& plan,
                                                  SourceLocation site);

}  // namespace detail

/// Sums of products of shared tiles a [rows x depth] and b [depth x columns] in registers, `each`
/// elements of the result [rows x columns] for a thread; the threads' parts are all of it. `shape`
/// is rows, columns, depth. Each sum is one chain of fused operations in the order of the depth.
template <class T>
class TileProduct {
  using Site = SourceLocation;

 public:
  TileProduct(TileGroup& group, const Dims& shape, const Dims& each, Site site = Site::current())
      : k_(&group.builder()),
        plan_(detail::product_plan(group, shape, each, site)),
        depth_(static_cast<std::uint32_t>(shape[2])),
        place_(detail::product_place(group, plan_, site)) {
    for (std::int64_t i = 0; i < each[0] * each[1]; ++i) {
      sums_.push_back(k_->template var<T>(detail::Host<T>{}, site));
    }
  }
  /// The accesses to a and to b, for their placement.
  [[nodiscard]] std::vector<tile::WarpAccess> use_a() const {
    return detail::product_use(plan_, depth_, true);
  }
  [[nodiscard]] std::vector<tile::WarpAccess> use_b() const {
    return detail::product_use(plan_, depth_, false);
  }
  void bind(const SharedTile<T>& a, const SharedTile<T>& b, Site site = Site::current()) {
    detail::check_product(*k_, plan_, depth_, a.data(), b.data(), site);
    cursors_.clear();
    cursors_.emplace_back(a.data(), place_[0], 0, site);
    cursors_.emplace_back(b.data(), 0, place_[1], site);
  }
  /// sums += a * b.
  void accumulate(Site site = Site::current()) {
    const auto rows = static_cast<std::uint32_t>(plan_.each[0]);
    const auto columns = static_cast<std::uint32_t>(plan_.each[1]);
    for (std::uint32_t d = 0; d < depth_; ++d) {
      RegisterTile<T> a;
      RegisterTile<T> b;
      for (std::uint32_t i = 0; i < rows; ++i) read(0, i, d, 1, a, site);
      for (std::uint32_t j = 0; j < columns; j += plan_.vector)
        read(1, d, j, plan_.vector, b, site);
      for (std::uint32_t i = 0; i < rows; ++i) {
        for (std::uint32_t j = 0; j < columns; ++j) {
          k_->fma_inplace(sums_[i * columns + j], a[i], b[j], {}, site);
        }
      }
    }
  }
  /// In the order of `TilePart::store` with the same `TileOptions::each`.
  [[nodiscard]] const std::vector<Var<T>>& sums() const noexcept { return sums_; }

 private:
  void read(std::size_t cursor, std::uint32_t row, std::uint32_t column, std::uint32_t count,
            RegisterTile<T>& to, Site site) {
    const std::size_t first = to.size();
    for (std::uint32_t i = 0; i < count; ++i) to.push_back(k_->template undefined<T>(site));
    const Operand pointer(Ptr<T, Shared>(cursors_[cursor].at(row, column, site)), site);
    detail::access<T>(*k_, false, ptx::Modifier::shared, pointer,
                      std::span<const Value<T>>(to.data() + first, count), {}, site);
  }

  KernelBuilder* k_;
  detail::SpreadPlan plan_;
  std::uint32_t depth_;
  std::array<Extent, 2> place_;
  std::vector<detail::SharedCursor> cursors_;
  std::vector<Var<T>> sums_;
};

/// `body(n)` for each tile of [0, size) along one dim, n the elements that it has: `tile`, less in
/// the last one. A body without parameter is called as `body()`.
template <class N, class Body>
void for_each_tile(KernelBuilder& k, const N& size, std::uint32_t tile, Body&& body,
                   SourceLocation site = SourceLocation::current()) {
  k.for_(
      0u, size, tile,
      [&](const Value<u32>& first) {
        if constexpr (requires { body(); }) {
          body();
        } else {
          const Value<u32> left = k.sub(size, first, {}, site);
          const Value<u32> here = k.min(left, tile, {}, site);
          body(here);
        }
      },
      {}, {}, site);
}

/// `for_each_tile` with staged tiles: for each tile of [0, size) the parts fill their shared tiles
/// and move on, the group waits, `body` reads the shared tiles, and the group waits again.
template <class N, class Body, class... T>
void for_each_staged(TileGroup& group, const N& size, std::uint32_t tile, Body&& body,
                     TilePart<T>&... parts) {
  KernelBuilder& k = group.builder();
  const auto stage = [&] {
    (parts.stage(), ...);
    (parts.next(), ...);
    group.sync();
  };
  if constexpr (requires { body(); }) {
    for_each_tile(k, size, tile, [&] {
      stage();
      body();
      group.sync();
    });
  } else {
    for_each_tile(k, size, tile, [&](const Value<u32>& here) {
      stage();
      body(here);
      group.sync();
    });
  }
}

/// A pointer of `walk`: from `start` on, by `stride` elements.
template <class T, class S>
struct Walked {
  Ptr<T, S> start;
  Extent stride = 1;
};
template <class T, class S>
Walked(Ptr<T, S>, Extent) -> Walked<T, S>;
template <class T, class S>
Walked(Ptr<T, S>) -> Walked<T, S>;
/// The same with the caller's variable, which goes on where the last `walk` stopped.
template <class T, class S>
struct Walking {
  Var<Ptr<T, S>>& at;
  Extent stride = 1;
};
template <class T, class S>
Walking(Var<Ptr<T, S>>&, Extent) -> Walking<T, S>;

namespace detail {

template <class T, class S>
struct Mover {
  Mover(KernelBuilder& k, const Walked<T, S>& from) : own(k.var(from.start)), stride(from.stride) {}
  Var<Ptr<T, S>>& at() { return own; }
  Var<Ptr<T, S>> own;
  Extent stride;
};
template <class T, class S>
struct BorrowedMover {
  BorrowedMover(KernelBuilder&, const Walking<T, S>& from) : lent(from.at), stride(from.stride) {}
  Var<Ptr<T, S>>& at() { return lent; }
  Var<Ptr<T, S>>& lent;
  Extent stride;
};
template <class T, class S>
Mover<T, S> mover(KernelBuilder& k, const Walked<T, S>& from) {
  return {k, from};
}
template <class T, class S>
BorrowedMover<T, S> mover(KernelBuilder& k, const Walking<T, S>& from) {
  return {k, from};
}

}  // namespace detail

/// `body(x, y, ...)` `count` times with the elements that the pointers reach, loaded in their
/// order; then each pointer moves by its stride.
template <class N, class Body, class... From>
void walk(KernelBuilder& k, const N& count, Unroll unroll, Body&& body, const From&... from) {
  std::tuple movers{detail::mover(k, from)...};
  const auto move = [](auto& mover) {
    if (mover.stride.is_constant()) {
      mover.at() += mover.stride.constant();
    } else {
      mover.at() += mover.stride.value();
    }
  };
  const auto step = [&](auto&... all) {
    const std::tuple values{k.ld(all.at())...};
    std::apply(body, values);
    (move(all), ...);
  };
  k.for_(
      0u, count, 1u, [&](const Value<u32>&) { std::apply(step, movers); }, unroll);
}

}  // namespace ptxgen::inline v0
