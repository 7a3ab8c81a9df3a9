// src/emulator/memory/tensor.cpp - copies of boxes of tensors
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "emulator/matrix/half.hpp"
#include "emulator/memory/async.hpp"
#include "emulator/memory/bulk.hpp"
#include "emulator/memory/bulk_parts.hpp"
#include "emulator/memory/steps.hpp"
#include "emulator/memory/tensor_maps.hpp"
#include "emulator/report/report.hpp"
#include "emulator/state/tensor_map.hpp"
#include "emulator/state/written_bits.hpp"
#include "support/count.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::emulator {
namespace {

using ptx::Modifier;
using ptx::Type;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

/// One copy that a lane issues.
struct Issue {
  Context& context;
  const Step& step;
  const MemoryDetail& detail;
  unsigned lane;

  [[nodiscard]] const TensorDetail& tensor() const { return detail.as<TensorDetail>(); }
  template <class Text>
  void report(Rule rule, Text&& text, std::uint32_t other = kNoIndex) const {
    OtherParty party;
    if (other != kNoIndex) {
      party = {other, context.cta->linear, context.warp->first_thread + lane};
    }
    context.grid->reporter->report(context, step.statement, rule, lane, party,
                                   std::forward<Text>(text));
  }
};

/// The bytes at a generic address, if they are readable.
const std::byte* bytes_at(const Context& context, u64 address) {
  const Grid& grid = *context.grid;
  if (window_of(address) == ptx::Space::Param) {
    const u64 offset = address - kParamWindow;
    const bool inside =
        offset <= grid.parameters.size() && kTensorMapBytes <= grid.parameters.size() - offset;
    return inside ? grid.parameters.data() + offset : nullptr;
  }
  if (window_of(address) != ptx::Space::Global) return nullptr;
  const Allocation* const found = grid.space->find(address);
  if (found == nullptr || found->freed || !found->holds(address) ||
      kTensorMapBytes > found->bytes - (address - found->start)) {
    return nullptr;
  }
  return grid.space->host(address);
}

constexpr std::string_view kDeclareMap =
    "pass the map that cuTensorMapEncodeTiled made as a kernel parameter (.param .align 64 .b8 "
    "map[128]; const __grid_constant__ CUtensorMap in CUDA C++) and take its address with "
    "cvta.param";

std::optional<TensorMap> read_map(const Issue& issue, u64 address) {
  const ptx::Space space = window_of(address);
  if (space == ptx::Space::Local || space == ptx::Space::Shared) {
    issue.report(Rule::TensorMap, [&] {
      return FindingText{
          format_text("the tensor map is in {} memory; it must be a kernel parameter, or in "
                      "constant or global memory",
                      space == ptx::Space::Local ? "the thread's local" : "shared"),
          {std::string(kDeclareMap)}};
    });
    return std::nullopt;
  }
  const std::byte* const bytes = bytes_at(issue.context, address);
  if (bytes == nullptr) {
    issue.report(Rule::TensorMap, [&] {
      return FindingText{format_text("there are no 128 bytes of a tensor map at {}", hex(address)),
                         {std::string(kDeclareMap)}};
    });
    return std::nullopt;
  }
  if (address % kTensorMapAlignment != 0) {
    issue.report(Rule::TensorMap, [&] {
      return FindingText{
          format_text("the tensor map at {} is not aligned to 64 bytes", hex(address)),
          {std::string(kDeclareMap)}};
    });
    return std::nullopt;
  }
  std::array<std::byte, kTensorMapBytes> copy;
  for (std::size_t i = 0; i < copy.size(); i += 8) load_bytes(copy.data() + i, bytes + i, 8);
  std::optional<TensorMap> map = TensorMap::unpacked(copy);
  if (!map) {
    issue.report(Rule::TensorMap, [&] {
      return FindingText{
          format_text("the 128 bytes at {} are not a tensor map of cuTensorMapEncodeTiled",
                      hex(address)),
          {"pass the CUtensorMap itself, not a pointer to it, and do not change its bytes"}};
    });
  } else if (TensorMapFault wrong = map->fault(); wrong.found()) {
    issue.report(Rule::TensorMap, [&] {
      return FindingText{std::move(wrong.message),
                         {"rule: " + wrong.rule, std::move(wrong.remedy)}};
    });
    map.reset();
  } else if (map->rank != issue.tensor().dimensions) {
    issue.report(Rule::TensorMap, [&] {
      return FindingText{
          format_text("the instruction gives {}, but the map is of a {}",
                      count_text(issue.tensor().dimensions, "coordinate"), map->text()),
          {format_text("use the .{}d form with {}", map->rank,
                       count_text(map->rank, "coordinate"))}};
    });
    map.reset();
  } else {
    check_map_fences(issue.context, issue.step, issue.lane, address);
  }
  return map;
}

/// Appends consecutive bytes in pieces of 16 of shared memory.
void add_runs(const TensorMap& map, u64 global, u32 start, u32 offset, u32 bytes, TensorBox& box) {
  while (bytes != 0) {
    const u32 shared = map.place(start, offset);
    const u32 part = std::min(bytes, kBulkUnit - shared % kBulkUnit);
    box.runs.push_back({global, shared, part});
    box.span = std::max(box.span, (shared - start + part + kBulkUnit - 1) / kBulkUnit * kBulkUnit);
    if (global != 0) global += part;
    offset += part;
    bytes -= part;
  }
}

/// A row of the box along dimension 0: the elements within the tensor, and those beyond its ends.
void add_row(const TensorMap& map, u64 row, bool inside, std::int64_t first, u32 start, u32 offset,
             TensorBox& box) {
  const u32 size = map.element_bytes();
  const std::int64_t count = map.count(0);
  const auto end = static_cast<std::int64_t>(map.dims[0]);
  const std::int64_t from = inside ? std::clamp<std::int64_t>(-first, 0, count) : count;
  const std::int64_t to = inside ? std::clamp<std::int64_t>(end - first, from, count) : count;
  const auto bytes = [&](std::int64_t elements) { return static_cast<u32>(elements) * size; };
  add_runs(map, 0, start, offset, bytes(from), box);
  add_runs(map, row + static_cast<u64>(first + from) * size, start, offset + bytes(from),
           bytes(to - from), box);
  add_runs(map, 0, start, offset + bytes(to), bytes(count - to), box);
}

TensorBox box_of(const TensorMap& map, const std::array<std::int64_t, kMaxTensorRank>& at,
                 u32 start) {
  TensorBox box;
  box.type = map.type;
  box.flush = map.flush;
  box.fill_nan = map.fill_nan;
  std::array<u32, kMaxTensorRank> index{};
  const u32 row_bytes = map.count(0) * map.element_bytes();
  for (u32 offset = 0;; offset += row_bytes) {
    bool inside = true;
    u64 row = map.address;
    for (u32 i = 1; i < map.rank; ++i) {
      const std::int64_t place = at[i] + std::int64_t{index[i]} * map.steps[i];
      inside &= place >= 0 && static_cast<u64>(place) < map.dims[i];
      row += static_cast<u64>(place) * map.strides[i];
    }
    add_row(map, row, inside, at[0], start, offset, box);
    u32 i = 1;
    for (; i < map.rank && ++index[i] == map.count(i); ++i) index[i] = 0;
    if (i >= map.rank) return box;
  }
}

/// Whether all bytes of the box in global memory are in allocations; reports those that are not.
bool check_global(const Issue& issue, const TensorBox& box, bool writes) {
  const Allocation* last = nullptr;
  for (const TensorBox::Run& run : box.runs) {
    if (run.global == 0) continue;
    const bool again = last != nullptr && run.global >= last->start &&
                       run.global + run.bytes <= last->start + last->bytes;
    if (again) continue;
    const CopySide side{issue.context, issue.step, issue.detail, issue.lane, run.bytes, writes};
    AccessRequest asked = side.request(1);
    const Fault fault{issue.context,      issue.step, issue.detail, asked,
                      ptx::Space::Global, issue.lane, run.global};
    last = issue.context.grid->space->find(run.global);
    if (last == nullptr || last->freed || !last->holds(run.global) ||
        run.bytes > last->bytes - (run.global - last->start)) {
      static_cast<void>(report_bounds(fault));
      return false;
    }
    if (writes && (last->read_only || last->kind == AllocationKind::Constant)) {
      report_readonly(fault);
      return false;
    }
  }
  return true;
}

void notify_global(const Issue& issue, const TensorBox& box, RaceAccess::Kind kind, u64 ticket) {
  Races* const races = issue.context.grid->races.get();
  if (races == nullptr) return;
  u64 addresses[32] = {};
  RaceAccess access;
  access.kind = kind;
  access.mask = 1u << issue.lane;
  access.addresses = addresses;
  access.ticket = ticket;
  const u32 size = ptx::bytes(box.type);
  for (const TensorBox::Run& run : box.runs) {
    if (run.global == 0) continue;
    const u32 unit = kind == RaceAccess::Kind::Atomic ? std::min(size, run.bytes) : run.bytes;
    for (u32 done = 0; done < run.bytes; done += unit) {
      addresses[issue.lane] = run.global + done;
      access.bytes = static_cast<std::uint8_t>(unit);
      races->access(issue.context, issue.step.statement, access);
    }
  }
}

u64 first_global(const TensorBox& box) {
  const auto found =
      std::ranges::find_if(box.runs, [](const TensorBox::Run& run) { return run.global != 0; });
  return found == box.runs.end() ? 0 : found->global;
}

std::array<std::int64_t, kMaxTensorRank> coordinates_of(const Issue& issue) {
  std::array<std::int64_t, kMaxTensorRank> at{};
  for (u32 i = 0; i < issue.tensor().dimensions; ++i) {
    at[i] = static_cast<std::int32_t>(
        get_lane(issue.context, issue.tensor().coordinates[i], issue.lane));
  }
  return at;
}

void issue_load(const Issue& issue, u64 to, u64 map_address, u64 barrier) {
  Context& context = issue.context;
  const std::optional<TensorMap> map = read_map(issue, map_address);
  BulkCopy copy;
  copy.kind = BulkDetail::Kind::Load;
  copy.bytes = map ? map->box_bytes() : 0;
  copy.size_unknown = !map;
  const CopySide target{context, issue.step, issue.detail, issue.lane, copy.bytes, true};
  Cta* owner = nullptr;
  bool good = target.shared(to, owner, issue.detail.cluster, map ? map->alignment() : 16);
  if (owner == nullptr) owner = context.cta;
  if (!find_barrier(context, issue.step, issue.detail, issue.lane, barrier, *owner, copy.barrier)) {
    return;
  }
  copy.to = to;
  copy.blocks = issue.tensor().ranks.present() ? ranks_of(context, issue.tensor().ranks, issue.lane)
                                               : 1u << owner->rank;
  if (map && good) {
    auto box =
        std::make_shared<TensorBox>(box_of(*map, coordinates_of(issue), static_cast<u32>(to)));
    box->space = context.grid->space;
    // Rows that are padded to the swizzle may end later than the bytes that they hold.
    const CopySide covered{context, issue.step, issue.detail, issue.lane, box->span, true};
    Cta* same = nullptr;
    u64 again = to + (owner == context.cta ? 0 : (owner->rank + 1) * kPeerBytes);
    good = covered.shared(again, same, true, 16) && check_global(issue, *box, false);
    if (good) {
      copy.ticket = AsyncCopies::of(context).new_ticket();
      copy.tensor = std::move(box);
      notify_global(issue, *copy.tensor, RaceAccess::Kind::AsyncRead, copy.ticket);
      notify_write(context, issue.step, copy, issue.lane);
      count_copy(context, issue.detail, copy, first_global(*copy.tensor));
    }
  }
  // After a finding, only complete the bytes at the mbarrier, to avoid a deadlock finding.
  enqueue(context, issue.step, issue.detail, issue.lane, copy);
}

void check_fenced(const Issue& issue, u64 from, u32 bytes) {
  Races* const races = issue.context.cta->races.get();
  if (races == nullptr) return;
  std::vector<u32> pieces;
  for (u32 done = 0; done < bytes; done += kBulkUnit)
    pieces.push_back(static_cast<u32>(from) + done);
  const u32 store = races->unfenced_store(issue.context, pieces);
  if (store == kNoIndex) return;
  issue.report(
      Rule::ProxyFence,
      [&] {
        const std::string place = issue.context.grid->image->at_text(store);
        return FindingText{
            format_text("the copy reads shared memory that was stored to{}{}, with no "
                        "fence.proxy.async after the store",
                        place.empty() ? "" : " ", place),
            {"rule: tensor copies read through the async proxy, which does not see ordinary "
             "stores before a proxy fence",
             "put fence.proxy.async after the stores, in the threads that made them, before the "
             "barrier"}};
      },
      store);
}

/// Types that a reduction of that operation has (PTX ISA, cp.reduce.async.bulk.tensor).
bool reduces(Modifier operation, Type type) {
  const bool integer =
      type == Type::u32 || type == Type::s32 || type == Type::u64 || type == Type::s64;
  const bool half = type == Type::f16 || type == Type::bf16;
  switch (operation) {
    case Modifier::add:
      return integer || half || type == Type::f32 || type == Type::f64;
    case Modifier::min:
    case Modifier::max:
      return integer || half;
    case Modifier::inc:
    case Modifier::dec:
      return type == Type::u32;
    default:
      return integer;
  }
}

void issue_store(const Issue& issue, u64 map_address, u64 from) {
  Context& context = issue.context;
  const std::optional<TensorMap> map = read_map(issue, map_address);
  if (!map) return;
  const Modifier reduction = issue.tensor().reduction;
  if (reduction != Modifier::none && !reduces(reduction, map->type)) {
    return issue.report(Rule::TensorMap, [&] {
      return FindingText{
          format_text("there is no reduction .{} of {}", ptx::name(reduction),
                      ptx::name(map->type)),
          {"rule: .add takes integers and floats of 16 to 64 bits, .min and .max "
           "integers, f16 and bf16, .inc and .dec u32, .and, .or and .xor integers"}};
    });
  }
  BulkCopy copy;
  copy.kind = BulkDetail::Kind::Store;
  copy.bytes = map->box_bytes();
  Cta* own = nullptr;
  const CopySide source{context, issue.step, issue.detail, issue.lane, copy.bytes, false};
  if (!source.shared(from, own, false, map->alignment())) return;
  auto box =
      std::make_shared<TensorBox>(box_of(*map, coordinates_of(issue), static_cast<u32>(from)));
  box->reduction = reduction;
  box->space = context.grid->space;
  const CopySide covered{context, issue.step, issue.detail, issue.lane, box->span, false};
  u64 again = from;
  if (!covered.shared(again, own, false, 16) || !check_global(issue, *box, true)) return;
  copy.ticket = AsyncCopies::of(context).new_ticket();
  copy.tensor = std::move(box);
  check_fenced(issue, from, copy.tensor->span);
  notify_range(context.cta->races.get(), covered, RaceAccess::Kind::AsyncRead, from, copy.ticket);
  notify_global(
      issue, *copy.tensor,
      reduction == Modifier::none ? RaceAccess::Kind::AsyncWrite : RaceAccess::Kind::Atomic,
      copy.ticket);
  const u64 global = first_global(*copy.tensor);
  count_copy(context, issue.detail, copy, global);
  enqueue(context, issue.step, issue.detail, issue.lane, copy);
}

// Delivery.

/// The bits of a NaN that fills elements out of bounds. NVIDIA does not document them.
u64 nan_of(Type type) {
  switch (type) {
    case Type::f16:
    case Type::bf16:
      return 0x7fff;
    case Type::f64:
      return 0x7fff'ffff'ffff'ffff;
    default:
      return 0x7fff'ffff;
  }
}

void flush_subnormals(std::byte (&data)[kBulkUnit]) {
  u32 words[kBulkUnit / 4];
  std::memcpy(words, data, sizeof words);
  for (u32& bits : words) {
    if ((bits & 0x7f800000) == 0) bits &= 0x80000000;
  }
  std::memcpy(data, words, sizeof words);
}

double from_bits(Type type, u64 bits) {
  switch (type) {
    case Type::f16:
      return from_half(static_cast<u32>(bits));
    case Type::bf16:
      return std::bit_cast<float>(static_cast<u32>(bits) << 16);
    case Type::f32:
      return std::bit_cast<float>(static_cast<u32>(bits));
    default:
      return std::bit_cast<double>(bits);
  }
}

/// To nearest even. Sums of two f16, bf16 or f32 are exact in double, or far from a tie.
u64 to_bits(Type type, double value) {
  if (std::isnan(value)) return nan_of(type);
  switch (type) {
    case Type::f16:
      return to_half(value);
    case Type::bf16: {
      const auto bits = std::bit_cast<u32>(static_cast<float>(value));
      return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    }
    case Type::f32:
      return std::bit_cast<u32>(static_cast<float>(value));
    default:
      return std::bit_cast<u64>(value);
  }
}

u64 reduced_integer(Modifier operation, Type type, u64 a, u64 b) {
  const bool is_signed = type == Type::s32 || type == Type::s64;
  const auto wide = [&](u64 bits) {
    return type == Type::s32 ? static_cast<std::int64_t>(static_cast<std::int32_t>(bits))
                             : static_cast<std::int64_t>(bits);
  };
  const bool less = is_signed ? wide(a) < wide(b) : a < b;
  switch (operation) {
    case Modifier::add:
      return a + b;
    case Modifier::min:
      return less ? a : b;
    case Modifier::max:
      return less ? b : a;
    case Modifier::inc:
      return a >= b ? 0 : a + 1;
    case Modifier::dec:
      return a == 0 || a > b ? b : a - 1;
    case Modifier::and_:
      return a & b;
    case Modifier::or_:
      return a | b;
    default:
      return a ^ b;
  }
}

u64 reduced_float(Modifier operation, Type type, u64 a, u64 b) {
  const double x = from_bits(type, a);
  const double y = from_bits(type, b);
  if (operation == Modifier::add) return to_bits(type, x + y);
  // As min and max: a NaN gives the other, and -0 is below +0.
  if (std::isnan(x)) return std::isnan(y) ? nan_of(type) : b;
  if (std::isnan(y)) return a;
  const bool less = x < y || (x == y && std::signbit(x));
  return less == (operation == Modifier::min) ? a : b;
}

/// Changes an element atomically: blocks on other host threads may do so at the same time.
template <class Word>
void reduce_element(const TensorBox& box, std::byte* memory, const std::byte* data) {
  Word b = 0;
  std::memcpy(&b, data, sizeof b);
  auto* const word = reinterpret_cast<Word*>(memory);
  Word old = __atomic_load_n(word, __ATOMIC_RELAXED);
  for (;;) {
    const bool real = ptx::kind(box.type) == ptx::TypeKind::Float;
    const auto result = static_cast<Word>(real ? reduced_float(box.reduction, box.type, old, b)
                                               : reduced_integer(box.reduction, box.type, old, b));
    if (__atomic_compare_exchange_n(word, &old, result, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
      return;
  }
}

void reduce_run(const TensorBox& box, std::byte* memory, const std::byte* data, u32 bytes) {
  const u32 size = ptx::bytes(box.type);
  for (u32 i = 0; i < bytes; i += size) {
    if (size == 2) reduce_element<std::uint16_t>(box, memory + i, data + i);
    if (size == 4) reduce_element<u32>(box, memory + i, data + i);
    if (size == 8) reduce_element<u64>(box, memory + i, data + i);
  }
}

/// Moves up to 16 bytes by pieces that load_bytes and store_bytes take.
template <class Move>
void by_pieces(u32 bytes, Move&& move) {
  for (u32 done = 0; done < bytes;) {
    u32 part = 16;
    while (part > bytes - done) part /= 2;
    move(done, part);
    done += part;
  }
}

}  // namespace

void load_box(Cta& target, const TensorBox& box) {
  const u64* const written = box.space->written();
  const u32 size = ptx::bytes(box.type);
  for (const TensorBox::Run& run : box.runs) {
    std::byte data[kBulkUnit] = {};
    if (run.global == 0) {
      const u64 fill = box.fill_nan ? nan_of(box.type) : 0;
      for (u32 i = 0; i < run.bytes; i += size) std::memcpy(data + i, &fill, size);
    } else {
      const std::byte* const from = box.space->host(run.global);
      by_pieces(run.bytes, [&](u32 done, u32 part) { load_bytes(data + done, from + done, part); });
      if (box.flush) flush_subnormals(data);
    }
    by_pieces(run.bytes, [&](u32 done, u32 part) {
      store_bytes(target.shared + run.shared + done, data + done, part);
    });
    for (u32 i = 0; i < run.bytes; ++i) {
      if (run.global == 0 || all_written(written, run.global - kGlobalBase + i, 1)) {
        mark_written<false>(target.shared_written, run.shared + i, 1);
      }
    }
  }
}

void store_box(Cta& source, const TensorBox& box) {
  u64* const written = box.space->written();
  for (const TensorBox::Run& run : box.runs) {
    if (run.global == 0) continue;
    std::byte data[kBulkUnit] = {};
    by_pieces(run.bytes, [&](u32 done, u32 part) {
      load_bytes(data + done, source.shared + run.shared + done, part);
    });
    std::byte* const to = box.space->host(run.global);
    if (box.reduction != Modifier::none) {
      reduce_run(box, to, data, run.bytes);
      continue;
    }
    by_pieces(run.bytes, [&](u32 done, u32 part) { store_bytes(to + done, data + done, part); });
    for (u32 i = 0; i < run.bytes; ++i) {
      if (all_written(source.shared_written, run.shared + i, 1)) {
        mark_written<true>(written, run.global - kGlobalBase + i, 1);
      }
    }
  }
}

void run_copy_tensor(Context& context, const Step& step) {
  const MemoryDetail& detail = context.code->memory[step.detail];
  const TensorDetail& tensor = detail.as<TensorDetail>();
  const u32 mask = context.mask(step);
  if (mask == 0) return;
  if (context.worker->memory.counters == nullptr) make_memory_view(context);
  context.warp->failed_poll.consecutive = 0;
  u64 shared[32];
  u64 maps[32];
  u64 barriers[32] = {};
  compute_addresses(context, detail.address, shared);
  compute_addresses(context, tensor.map, maps);
  if (tensor.load) compute_addresses(context, tensor.barrier, barriers);
  for_each_lane(mask, [&](unsigned lane) {
    const Issue issue{context, step, detail, lane};
    if (tensor.load) {
      issue_load(issue, shared[lane], maps[lane], barriers[lane]);
    } else {
      issue_store(issue, maps[lane], shared[lane]);
    }
  });
}

}  // namespace ptxgen::inline v0::emulator
