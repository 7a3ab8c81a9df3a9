// src/kernels/attention/decode.cpp - attention of one query token over a KV cache
#include "ptxgen/kernels/attention/decode.hpp"

#include <bit>
#include <cmath>

#include "kernels/attention/decode_emit.hpp"
#include "kernels/parts/element.hpp"
#include "kernels/parts/geometry.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0 {

namespace {

using attention::Kit;
using attention::kWarps;

constexpr float kLog2E = 1.44269504f;

[[noreturn]] void refuse(std::string message) {
  Error error(Stage::Build, "bad-parameter", std::move(message));
  error.kernel = kernel_name<AttentionDecode>;
  throw error.refresh();
}

void check_layout(const AttentionDecode& spec) {
  check_parameters(spec);
  if (spec.cache == ElementType::q8_0 && spec.head_size % 32 != 0) {
    refuse(
        format_text("head_size is {}; with a cache of q8_0, whose blocks have 32 values, it is a "
                    "multiple of 32",
                    spec.head_size));
  }
  if (!attention::fits(spec)) {
    refuse(
        format_text("group is {} with head_size {}; a block has registers for 8 query heads (6 of "
                    "more than 128 values), and larger groups are halved: take an even group",
                    spec.group, spec.head_size));
  }
}

struct DecodeParameters {
  Ptr<b8> q, k, v;
  Ptr<u32> lengths;
  Ptr<b8> out, workspace;
  Value<u32> rows, kv_heads, max_seq, window, chunk;
  Value<f32> scale;
  std::optional<Value<f32>> cap;
};

DecodeParameters parameters_of(KernelBuilder& k, const AttentionDecode& spec) {
  for (const char* name : {"q", "k", "v"}) k.declare_param<Ptr<b8>>(name);
  k.declare_param<Ptr<u32>>("lengths");
  for (const char* name : {"out", "workspace"}) k.declare_param<Ptr<b8>>(name);
  for (const char* name : {"rows", "kv_heads", "max_seq", "window", "chunk"}) {
    k.declare_param<u32>(name);
  }
  for (const char* name : {"scale", "cap"}) k.declare_param<f32>(name);
  // Braces fix the order of the reads.
  DecodeParameters p{k.load_param<Ptr<b8>>("q"),
                     k.load_param<Ptr<b8>>("k"),
                     k.load_param<Ptr<b8>>("v"),
                     k.load_param<Ptr<u32>>("lengths"),
                     k.load_param<Ptr<b8>>("out"),
                     k.load_param<Ptr<b8>>("workspace"),
                     k.load_param<u32>("rows"),
                     k.load_param<u32>("kv_heads"),
                     k.load_param<u32>("max_seq"),
                     k.load_param<u32>("window"),
                     k.load_param<u32>("chunk"),
                     k.load_param<f32>("scale"),
                     std::nullopt};
  if (spec.softcap) p.cap.emplace(k.load_param<f32>("cap"));
  return p;
}

Kit kit_of(KernelBuilder& k, const AttentionDecode& spec) {
  const attention::DecodeLayout layout = attention::decode_layout(spec);
  const std::uint32_t states = kWarps * spec.block_heads();
  const SharedArray<f32> outputs = k.shared<f32>(states * layout.head_floats(), "outputs");
  const SharedArray<f32> peaks = k.shared<f32>(states * 2, "peaks");
  const Value<u32> thread = k.tid_x();
  const Value<u32> lane = thread & 31u;
  const Value<u32> warp = thread >> 5u;
  const Value<u32> team = lane >> static_cast<unsigned>(std::countr_zero(layout.lanes));
  return {k,       spec, layout, spec.block_heads(), lane, warp, team, lane & (layout.lanes - 1),
          outputs, peaks};
}

/// The positions of a row that count.
struct Extent {
  Value<u32> length, start, chunks;
};

Extent extent_of(KernelBuilder& k, const DecodeParameters& p, const Value<u32>& row) {
  const Value<u32> stored = p.lengths[row];
  const Value<u32> length = k.min(stored, p.max_seq);
  const Value<u32> inside = k.min(p.window, length);
  const Value<u32> count = k.selp(length, inside, p.window == 0u);
  const Value<u32> chunks = (count + (p.chunk - 1u)) / p.chunk;
  // A row without positions has one block, which writes zeros.
  return {length, length - count, k.max(chunks, 1u)};
}

attention::Span span_of(const Kit& kit, const DecodeParameters& p, const Extent& extent,
                        const Value<u32>& row, const Value<u32>& kv_head) {
  KernelBuilder& k = kit.k;
  const auto pitch = static_cast<std::uint32_t>(bytes(kit.spec.cache, kit.spec.head_size));
  const Value<u64> strip_bytes = k.mul_wide(p.max_seq, pitch);
  const Value<u32> strip = kit.spec.shared_cache ? kv_head : k.mad_lo(row, p.kv_heads, kv_head);
  const Value<u64> offset = k.convert<u64>(strip) * strip_bytes;
  const Value<u32> begin = k.mad_lo(k.ctaid_x(), p.chunk, extent.start);
  const Value<u32> end = k.min(begin + p.chunk, extent.length);
  return {p.k + offset, p.v + offset, begin, end};
}

// Scores as exponents of 2: the factor of the queries, and the cap of the scores.
struct Factors {
  Value<f32> query;
  std::optional<Value<f32>> cap;
};

Factors factors_of(KernelBuilder& k, const AttentionDecode& spec, const DecodeParameters& p) {
  const auto usual = static_cast<float>(1 / std::sqrt(static_cast<double>(spec.head_size)));
  const Value<f32> scale = k.selp(usual, p.scale, p.scale == 0.0f);
  if (!p.cap) return {scale * kLog2E, std::nullopt};
  return {scale / *p.cap, *p.cap * kLog2E};
}

// A barrier of the block that tells all threads whether p holds for one: all agree on the result.
Pred any_of_block(KernelBuilder& k, const Pred& p) {
  const Pred result = k.undefined<pred>();
  k.emit(ptx::Op::bar_red, {ptx::Modifier::or_}, {result, 0, p});
  return result;
}

// Whether this block is the last one of its strip to arrive.
Pred arrive(const Kit& kit, const Ptr<u32>& ticket, const Value<u32>& chunks) {
  KernelBuilder& k = kit.k;
  auto last = k.var<pred>(false);
  k.bar_sync();
  k.if_(k.tid_x() == 0u, [&] {
    const Value<u32> limit = chunks - 1u;
    // The last one resets it to 0. Releases the writes of the block before the barrier, and
    // acquires those of other blocks.
    const Value<u32> before = k.atom_inc(ticket, limit, Atomic{Order::acq_rel, Scope::gpu});
    last = before == limit;
  });
  return any_of_block(k, last);
}

// Contributes the block's part; the last block of the strip merges them all.
void exchange(const Kit& kit, const DecodeParameters& p, const Extent& extent,
              const Value<u32>& strip, const Ptr<b8>& out) {
  KernelBuilder& k = kit.k;
  const std::uint32_t part_bytes = attention::part_floats(kit.spec) * 4;
  const Value<u64> strips = k.mul_wide(k.nctaid_y(), p.rows);
  const Value<u64> tickets = (strips * std::uint64_t{4} + 31u) & ~std::uint64_t{31};
  const Value<u64> first_part = k.mul_wide(strip, k.nctaid_x()) * std::uint64_t{part_bytes};
  const Ptr<b8> parts = p.workspace + tickets + first_part;
  attention::store_part(kit, parts + k.mul_wide(k.ctaid_x(), part_bytes));
  const Ptr<u32> ticket = p.workspace.cast<u32>() + strip;
  k.if_(arrive(kit, ticket, extent.chunks), [&] {
    attention::States states = attention::start_states(kit);
    attention::accumulate_parts(kit, {parts, extent.chunks}, states);
    attention::share_states(kit, states);
    k.bar_sync();
    attention::store_output(kit, out);
  });
}

void attend(const Kit& kit, const DecodeParameters& p, const Extent& extent) {
  KernelBuilder& k = kit.k;
  const Value<u32> row = k.ctaid_z();
  const Value<u32> part = k.ctaid_y();
  const Value<u32> strip = k.mad_lo(row, k.nctaid_y(), part);
  const int halvings = std::countr_zero(kit.spec.parts_of_group());
  const Value<u32> kv_head = halvings == 0 ? part : part >> static_cast<unsigned>(halvings);
  const attention::Span span = span_of(kit, p, extent, row, kv_head);
  const std::uint32_t group_bytes = kit.heads * kit.spec.head_size * bytes(kit.spec.type);
  const Value<u64> group = k.mul_wide(strip, group_bytes);
  const Factors factors = factors_of(k, kit.spec, p);
  const attention::Query query(kit, p.q + group, factors.query);
  attention::States states = attention::start_states(kit);
  attention::accumulate(kit, query, span, factors.cap, states);
  attention::share_states(kit, states);
  const Ptr<b8> out = p.out + group;
  k.if_(
      any_of_block(k, extent.chunks == 1u), [&] { attention::store_output(kit, out); },
      [&] { exchange(kit, p, extent, strip, out); });
}

}  // namespace

BuiltKernel AttentionDecode::build(const ptx::Target& target) const {
  check_layout(*this);
  KernelBuilder k(kernel_name<AttentionDecode>, target.name);
  k.required_threads(kThreads);
  k.min_blocks_per_sm(4);  // 128 registers a thread
  // The layout determines the loads in flight.
  k.pragma("nounroll");
  if (precise) k.contract(Contract::Forbid);
  const DecodeParameters parameters = parameters_of(k, *this);
  k.if_(k.ctaid_z() < parameters.rows, [&] {
    const Extent extent = extent_of(k, parameters, k.ctaid_z());
    // The grid covers max_seq; a row may be shorter.
    const Pred has_chunk = any_of_block(k, k.ctaid_x() < extent.chunks);
    k.if_(has_chunk, [&] { attend(kit_of(k, *this), parameters, extent); });
  });
  return k.build();
}

LaunchGeometry AttentionDecode::geometry() const {
  const bool empty = rows == 0 || kv_heads == 0 || max_seq == 0;
  LaunchGeometry geometry =
      one_dimensional(kernel_name<AttentionDecode>, empty ? 0 : chunks(), 1, kThreads);
  geometry.grid.y = strips_of_row();
  geometry.grid.z = rows;
  return geometry;
}

KernelCost AttentionDecode::cost() const noexcept {
  const std::uint64_t outputs = rows * heads() * head_size * bytes(type);
  const std::uint64_t row = bytes(cache, head_size);
  const std::uint64_t read = std::uint64_t{shared_cache ? 1 : rows} * kv_heads * positions() * row;
  return {.bytes_read = outputs + 2 * read + std::uint64_t{4} * rows,
          .bytes_written = outputs,
          .flops = 4 * rows * heads() * positions() * head_size};
}

void Describe<AttentionDecode>::check(const K& spec, const O& operands) {
  if (spec.softcap ? operands.cap > 0 : operands.cap == 0) return;
  Error error(Stage::Launch, "arguments",
              format_text("cap is {}; {}", operands.cap,
                          spec.softcap ? "with softcap it is positive"
                                       : "without softcap it is not used: set "
                                         "AttentionDecode::softcap, or leave it 0"));
  error.kernel = kernel_name<AttentionDecode>;
  throw error.refresh();
}

KernelKey Describe<AttentionDecode>::key(const K& spec) {
  KernelKey key;
  key.values = {
      spec.group, spec.head_size, static_cast<std::uint64_t>(spec.type),
      static_cast<std::uint64_t>(spec.cache),
      (spec.softcap ? 1u : 0u) | (spec.shared_cache ? 2u : 0u) | (spec.precise ? 4u : 0u)};
  return key;
}

WorkspaceNeed Describe<AttentionDecode>::workspace(const K& spec) {
  if (spec.chunks() <= 1) return {};
  const std::uint64_t strips = std::uint64_t{spec.rows} * spec.strips_of_row();
  return {attention::ticket_bytes(strips),
          strips * spec.chunks() * attention::part_floats(spec) * 4};
}

}  // namespace ptxgen::inline v0
