// src/kernels/attention/rope_kv_write.cpp - q and k rotated, k and v into their caches
#include "ptxgen/kernels/attention/rope_kv_write.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <span>

#include "kernels/parts/cache_rows.hpp"
#include "kernels/parts/geometry.hpp"
#include "kernels/parts/root_mean_square.hpp"
#include "kernels/parts/rotation.hpp"
#include "kernels/parts/whole_blocks.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0 {

namespace {

struct RopeParameters {
  Ptr<b8> q, k, v;
  Ptr<u32> positions;
  std::optional<Ptr<f32>> q_weight, k_weight, factors;
  Ptr<b8> out, k_cache, v_cache;
  Value<u32> rows, heads, kv_heads, max_seq;
  Value<f32> theta;
  std::optional<Value<f32>> eps;
};

RopeParameters parameters_of(KernelBuilder& k, const RopeKvWrite& spec) {
  for (const char* name : {"q", "k", "v"}) k.declare_param<Ptr<b8>>(name);
  k.declare_param<Ptr<u32>>("positions");
  for (const char* name : {"q_weight", "k_weight", "factors"}) k.declare_param<Ptr<f32>>(name);
  for (const char* name : {"out", "k_cache", "v_cache"}) k.declare_param<Ptr<b8>>(name);
  for (const char* name : {"rows", "heads", "kv_heads", "max_seq"}) k.declare_param<u32>(name);
  for (const char* name : {"theta", "eps"}) k.declare_param<f32>(name);
  // Braces fix the order of the reads.
  RopeParameters p{k.load_param<Ptr<b8>>("q"),
                   k.load_param<Ptr<b8>>("k"),
                   k.load_param<Ptr<b8>>("v"),
                   k.load_param<Ptr<u32>>("positions"),
                   std::nullopt,
                   std::nullopt,
                   std::nullopt,
                   k.load_param<Ptr<b8>>("out"),
                   k.load_param<Ptr<b8>>("k_cache"),
                   k.load_param<Ptr<b8>>("v_cache"),
                   k.load_param<u32>("rows"),
                   k.load_param<u32>("heads"),
                   k.load_param<u32>("kv_heads"),
                   k.load_param<u32>("max_seq"),
                   k.load_param<f32>("theta"),
                   std::nullopt};
  if (spec.qk_norm) {
    p.q_weight.emplace(k.load_param<Ptr<f32>>("q_weight"));
    p.k_weight.emplace(k.load_param<Ptr<f32>>("k_weight"));
    p.eps.emplace(k.load_param<f32>("eps"));
  }
  if (spec.factors) p.factors.emplace(k.load_param<Ptr<f32>>("factors"));
  return p;
}

/// What a block's heads are, all of q, k or v: the same in all rows.
struct Heads {
  Pred query, rotated;
  Value<u32> index, count;  ///< of a row
  Ptr<b8> from, to;         ///< in the rows; out, or a cache
  std::optional<Ptr<f32>> weight;
};

/// Emits the kernel. A warp has the head of a row in shared memory as f32.
struct Emitter {
  KernelBuilder& k;
  const RopeKvWrite& spec;
  const RopeParameters& p;
  Value<u32> lane, size;
  SharedArray<f32> stage;

  template <class T>
  [[nodiscard]] Ptr<T> select(const Pred& first, const Ptr<T>& a, const Ptr<T>& b) const {
    auto either = k.var(b);
    k.guarded(first, [&] { either.set(a); });
    return either.view();
  }
  [[nodiscard]] Heads heads() const {
    const Value<u32> block = k.ctaid_x();
    const Value<u32> first_value = p.heads + p.kv_heads;
    const Pred query = block < p.heads;
    const Pred rotated = block < first_value;
    const Value<u32> of_values = block - first_value;
    const Value<u32> of_keys = k.selp(block - p.heads, of_values, rotated);
    Heads heads{query,
                rotated,
                k.selp(block, of_keys, query),
                k.selp(p.heads, p.kv_heads, query),
                select(query, p.q, select(rotated, p.k, p.v)),
                select(query, p.out, select(rotated, p.k_cache, p.v_cache)),
                std::nullopt};
    if (p.q_weight) heads.weight.emplace(select(query, *p.q_weight, *p.k_weight));
    return heads;
  }

  // The head at `from` to the stage. The scale that normalises it, where there is one.
  [[nodiscard]] std::optional<Value<f32>> fetch(const Ptr<b8>& from) const {
    const RowBlock row{k, spec.type, RopeKvWrite::kThreads, from, from, lane, size};
    const auto load = [&](const Value<u32>& i) {
      const Ptr<b8> at = from.offset_bytes(k.mul_wide(i, bytes(spec.type)));
      return expand(k, load_floats(k, at, spec.type, 1), 1)[0];
    };
    const auto keep = [&](const Value<u32>& i, const Value<f32>& element) {
      stage[i] = element;
      return element;
    };
    std::optional<Value<f32>> scale;
    if (p.eps) {
      scale.emplace(inverse_rms(row, spec.precise, *p.eps, load, keep));
    } else {
      row.for_each_loaded(load, keep);
    }
    return scale;
  }

  // Each lane normalises the elements that it fetched, rounded as a row of per_head_rmsnorm.
  void normalise(const Ptr<f32>& weight, const Value<f32>& scale) const {
    k.for_(lane, size, RopeKvWrite::kThreads, [&](Value<u32> i) {
      const Value<f32> element = stage[i];
      const Value<f32> scaled = element * scale;
      const Value<f32> factor = weight[i];
      stage[i] = rounded_to(k, spec.type, scaled * factor);
    });
  }

  // The pairs of the stage, each by one lane, rounded as a row of rope.
  void rotate(const Value<u32>& position) const {
    const bool interleaved = spec.pairs == RopePairs::Interleaved;
    const std::uint32_t half = spec.head_size / 2;
    k.for_(lane, half, RopeKvWrite::kThreads, [&](Value<u32> pair) {
      std::optional<Value<f32>> factor;
      if (p.factors) factor.emplace((*p.factors)[pair]);
      const Rotation rotation = rotation_of(k, spec.precise, pair, p.theta, spec.head_size, factor);
      const SinCos by = rotation(position);
      const Ptr<f32, Shared> first = stage.base() + (interleaved ? pair * 2 : pair);
      const Ptr<f32, Shared> second = first + half;
      if (interleaved) {
        const std::array<Value<f32>, 2> x = k.ld<2>(first);
        const auto [y0, y1] = rotated(k, x[0], x[1], by);
        const Value<f32> rounded0 = rounded_to(k, spec.type, y0);
        const Value<f32> rounded1 = rounded_to(k, spec.type, y1);
        k.st(first, std::array{rounded0, rounded1});
      } else {
        const Value<f32> x0 = k.ld(first);
        const Value<f32> x1 = k.ld(second);
        const auto [y0, y1] = rotated(k, x0, x1, by);
        k.st(first, rounded_to(k, spec.type, y0));
        k.st(second, rounded_to(k, spec.type, y1));
      }
    });
  }

  void store_query(const Ptr<b8>& to) const {
    k.for_(lane, size, RopeKvWrite::kThreads, [&](Value<u32> i) {
      const Value<f32> element = stage[i];
      store_floats(k, to.offset_bytes(k.mul_wide(i, bytes(spec.type))), spec.type, {element});
    });
  }
  void store_cache(const Ptr<b8>& to) const {
    const CacheHead head{k, spec.cache, to, lane, size};
    if (!is_block_format(spec.cache)) {
      head.floats([&](const Value<u32>& i) { return Value<f32>(stage[i]); });
      return;
    }
    head.blocks([&](const Value<u32>& group, const Pred& inside) {
      const Value<u32> first = k.selp(group << 2u, 0u, inside);
      const Ptr<b8, Shared> at = (stage.base() + first).template cast<b8>();
      std::vector<Value<f32>> values;
      for (const Value<f32>& value : load_floats(k, at, ElementType::f32, kLaneValues).full) {
        values.push_back(k.selp(value, 0.0f, inside));
      }
      return values;
    });
  }

  // Whether the row is one that the caches get; the same for all lanes.
  [[nodiscard]] Pred is_written(const Value<u32>& row, const Value<u32>& position) const {
    const Pred has_position = position < p.max_seq;
    if (!spec.shared_cache) return k.vote_all(has_position);
    return k.vote_all(last_of_position(k, p.positions, row, p.rows, position) & has_position);
  }

  void emit_row(const Heads& heads, const Value<u32>& row) const {
    const Value<u32> position = p.positions[row];
    const Value<u64> head = k.mad_wide(row, heads.count, k.convert<u64>(heads.index));
    const std::uint64_t head_bytes = std::uint64_t{spec.head_size} * bytes(spec.type);
    const std::optional<Value<f32>> scale = fetch(heads.from.offset_bytes(head * head_bytes));
    k.if_(heads.rotated, [&] {
      if (scale) normalise(*heads.weight, *scale);
      k.bar_warp_sync();
      rotate(position);
    });
    k.bar_warp_sync();
    k.if_(
        heads.query, [&] { store_query(heads.to.offset_bytes(head * head_bytes)); },
        [&] {
          k.if_(is_written(row, position), [&] {
            const Value<u64> strip = spec.shared_cache ? k.convert<u64>(heads.index) : head;
            const Value<u64> inside = k.convert<u64>(position);
            const Value<u64> place = k.mad_lo(strip, k.convert<u64>(p.max_seq), inside);
            const std::uint64_t row_bytes = bytes(spec.cache, spec.head_size);
            store_cache(heads.to.offset_bytes(place * row_bytes));
          });
        });
    // The next row's head replaces this one.
    k.bar_warp_sync();
  }
};

}  // namespace

BuiltKernel RopeKvWrite::build(const ptx::Target& target) const {
  check_parameters(*this);
  check_whole_blocks(kernel_name<RopeKvWrite>, "head_size", head_size, cache);
  KernelBuilder k(kernel_name<RopeKvWrite>, target.name);
  k.required_threads(kThreads);
  k.contract(Contract::Forbid);
  const RopeParameters p = parameters_of(k, *this);
  const SharedArray<f32> stage = k.shared<f32>(head_size, "head");
  const Emitter emitter{k, *this, p, k.tid_x(), k.constant<u32>(head_size), stage};
  const Heads of_block = emitter.heads();
  const Value<u32> first_row = k.ctaid_y();
  k.for_(first_row, p.rows, k.nctaid_y(), [&](Value<u32> row) { emitter.emit_row(of_block, row); });
  return k.build();
}

LaunchGeometry RopeKvWrite::geometry() const {
  check_whole_blocks(kernel_name<RopeKvWrite>, "head_size", head_size, cache);
  const bool empty = rows == 0 || heads == 0 || kv_heads == 0 || max_seq == 0;
  LaunchGeometry geometry =
      one_dimensional(kernel_name<RopeKvWrite>, empty ? 0 : heads + 2 * kv_heads, 1, kThreads);
  geometry.grid.y = std::min(rows, 65535u);
  return geometry;
}

KernelCost RopeKvWrite::cost() const noexcept {
  const std::uint64_t head = std::uint64_t{rows} * head_size;
  const std::uint64_t rotated = head * (heads + kv_heads);
  const std::uint64_t cached = head * 2 * kv_heads;
  const std::uint64_t tables = (qk_norm ? 8 : 0) + (factors ? 2 : 0);
  const std::uint64_t quantised = is_block_format(cache) ? cached : 0;
  return {.bytes_read = head * (heads + 2 * kv_heads) * bytes(type) + tables * head_size +
                        std::uint64_t{4} * rows,
          .bytes_written = head * heads * bytes(type) + bytes(cache, cached),
          .flops = (qk_norm ? 7 : 3) * rotated + 3 * quantised};
}

void Describe<RopeKvWrite>::check(const K& spec, const O& operands) {
  static_cast<void>(spec.geometry());
  if (spec.qk_norm || operands.eps == 0) return;
  Error error(Stage::Launch, "arguments",
              format_text("eps is {}; without qk_norm it is not used: set RopeKvWrite::qk_norm, or "
                          "leave it 0",
                          operands.eps));
  error.kernel = kernel_name<RopeKvWrite>;
  throw error.refresh();
}

KernelKey Describe<RopeKvWrite>::key(const K& spec) {
  KernelKey key;
  key.values = {spec.head_size, static_cast<std::uint64_t>(spec.type),
                static_cast<std::uint64_t>(spec.cache), static_cast<std::uint64_t>(spec.pairs),
                (spec.qk_norm ? 1u : 0u) | (spec.factors ? 2u : 0u) |
                    (spec.shared_cache ? 4u : 0u) | (spec.precise ? 8u : 0u)};
  return key;
}

namespace {

/// A head of q or k through the steps of the kernel in fp64.
struct ReferenceHead {
  const RopeKvWrite& spec;
  HostOperands& host;
  RotationSpec rotation;

  // Normalised and rotated. The magnitude has the errors of the norm too.
  void compute(std::span<const double> x, std::string_view weight, double position,
               std::span<double> y, std::span<double> magnitude) const {
    std::vector<double> normalised(x.begin(), x.end());
    if (spec.qk_norm) rms_reference(x, host.input(weight), host.number("eps"), normalised);
    rotation_reference(rotation, position, 1, normalised, y, magnitude);
  }
};

// Half the distance of neighbours of 1.
double unit_roundoff(ElementType type) {
  return type == ElementType::f32 ? 0x1p-24 : type == ElementType::f16 ? 0x1p-11 : 0x1p-8;
}

}  // namespace

void Describe<RopeKvWrite>::reference(const RopeKvWrite& spec, HostOperands& host) {
  const std::size_t size = spec.head_size;
  ReferenceHead reference{
      spec, host, {spec.pairs == RopePairs::Interleaved, spec.precise, host.number("theta")}};
  if (spec.factors) reference.rotation.factors = host.input("factors");
  HostOperands::Operand& out = host["out"];
  HostOperands::Operand& k_cache = host["k_cache"];
  HostOperands::Operand& v_cache = host["v_cache"];
  out.magnitude.resize(out.values.size());
  k_cache.magnitude.resize(k_cache.values.size());
  v_cache.magnitude.resize(v_cache.values.size());
  for (std::size_t row = 0; row < spec.rows; ++row) {
    const double position = host.input("positions")[row];
    for (std::size_t head = row * spec.heads; head < (row + 1) * spec.heads; ++head) {
      reference.compute(std::span(host.input("q")).subspan(head * size, size), "q_weight", position,
                        std::span(out.values).subspan(head * size, size),
                        std::span(out.magnitude).subspan(head * size, size));
    }
    if (position >= spec.max_seq) continue;
    for (std::size_t index = 0; index < spec.kv_heads; ++index) {
      const std::size_t head = row * spec.kv_heads + index;
      const std::size_t strip = spec.shared_cache ? index : head;
      const std::size_t to = (strip * spec.max_seq + static_cast<std::size_t>(position)) * size;
      reference.compute(std::span(host.input("k")).subspan(head * size, size), "k_weight", position,
                        std::span(k_cache.values).subspan(to, size),
                        std::span(k_cache.magnitude).subspan(to, size));
      std::ranges::copy(std::span(host.input("v")).subspan(head * size, size),
                        v_cache.values.begin() + static_cast<std::ptrdiff_t>(to));
    }
  }
}

// A relative error of the norm and the rounding after it pass through the rotation, whose magnitude
// is the sum of both elements'; k is rounded to its type before the cache.
ErrorBound Describe<RopeKvWrite>::bound(const RopeKvWrite& spec) {
  const double rounding = unit_roundoff(spec.type);
  const double norm =
      spec.qk_norm ? rms_error(spec.head_size, RopeKvWrite::kThreads, spec.precise) + rounding : 0;
  return {.relative = (rotation_error(spec.precise, spec.factors) + norm + rounding) * 1.01};
}

}  // namespace ptxgen::inline v0
