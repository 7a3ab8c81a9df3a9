// src/kernels/gemv/group.cpp - several matrices times one vector
#include "ptxgen/kernels/gemv/group.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "kernels/gemv/blocks.hpp"
#include "kernels/gemv/emit.hpp"
#include "kernels/parts/activation.hpp"
#include "kernels/parts/geometry.hpp"
#include "ptxgen/kernels/gemv/kernel.hpp"
#include "ptxgen/kernels/quantization/blocks.hpp"
#include "ptxgen/kernels/quantization/repacked_rows.hpp"
#include "ptxgen/support/error.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0 {

namespace {

[[noreturn]] void refuse(std::string message) {
  Error error(Stage::Build, "bad-parameter", std::move(message));
  error.kernel = kernel_name<GemvGroup>;
  throw error.refresh();
}

void check_lane_rows(const GemvGroup& spec) {
  if (!std::has_single_bit(spec.lane_rows)) {
    refuse(format_text("lane_rows is {}; it is 0, 1, 2 or 4", spec.lane_rows));
  }
  if (spec.repacked) refuse("lane_rows are of blocks as stored; with repacked rows it is 0");
  if (spec.x > ElementType::bf16) {
    refuse(format_text("x is {}; with lane_rows it is f32, f16 or bf16", to_string(spec.x)));
  }
  for (std::uint32_t i = 0; i < spec.matrices(); ++i) {
    const gemv::BlockFormat* format = gemv::block_format(spec.type(i), spec.k);
    const std::uint32_t step = format == nullptr ? 0 : gemv::lane_step(*format);
    if (step != 0 && spec.k % step == 0) continue;
    refuse(step == 0
               ? format_text("w{} is {}; with lane_rows weights are in blocks", i,
                             to_string(spec.type(i)))
               : format_text("k is {}; with lane_rows and weights of {} it is a multiple of {}",
                             spec.k, to_string(spec.type(i)), step));
  }
}

void check_group(const GemvGroup& spec) {
  check_parameters(spec);
  if (!std::has_single_bit(spec.warp_rows)) {
    refuse(format_text("warp_rows is {}; it is 2, 4 or 8", spec.warp_rows));
  }
  if (spec.n1 == 0 && spec.n2 != 0) {
    refuse(format_text("n1 is 0 and n2 {}; without a second matrix there is no third", spec.n2));
  }
  if (spec.lane_rows != 0) check_lane_rows(spec);
  if (spec.gate == GemvGate::None) return;
  if (spec.n0 != spec.n1) {
    refuse(format_text("n0 is {} and n1 {}; with a gate they are equal", spec.n0, spec.n1));
  }
}

// Steps of q6_k of all 32 lanes are so large that eight warps would not fit the 64 KiB of sm_75.
std::uint32_t warps_of(const GemvGroup& spec) {
  for (std::uint32_t i = 0; i < spec.matrices(); ++i) {
    const gemv::BlockFormat* format = gemv::block_format(spec.type(i), spec.k);
    if (format != nullptr && !spec.is_repacked(i) && format->type == ElementType::q6_k &&
        format->lanes == 32)
      return 4;
  }
  return 8;
}

// Warps of a block whose lanes have rows of their own.
constexpr std::uint32_t kLaneWarps = 3;

std::uint32_t lane_blocks(const GemvGroup& spec, std::uint32_t i) {
  return static_cast<std::uint32_t>(
      gemv::ceil_div(spec.rows(i), std::uint64_t{32} * kLaneWarps * spec.lane_rows));
}

struct Pointers {
  std::vector<Ptr<b8>> y, w, bias;
  Ptr<b8> x;
};

Pointers pointers_of(KernelBuilder& k, const GemvGroup& spec) {
  for (const char* kind : {"y", "w", "bias"}) {
    for (const char* number : {"0", "1", "2"}) {
      k.declare_param<Ptr<b8>>(std::string(kind) + number);
    }
  }
  k.declare_param<Ptr<b8>>("x");
  Pointers all{{}, {}, {}, k.load_param<Ptr<b8>>("x")};
  for (std::uint32_t i = 0; i < spec.matrices(); ++i) {
    const std::string number = std::to_string(i);
    all.w.push_back(k.load_param<Ptr<b8>>("w" + number));
    const bool gated = i == 1 && spec.gate != GemvGate::None;  // has no output
    all.y.push_back(gated ? all.y[0] : k.load_param<Ptr<b8>>("y" + number));
    if (spec.bias) all.bias.push_back(k.load_param<Ptr<b8>>("bias" + number));
  }
  return all;
}

gemv::Kit kit_of(KernelBuilder& k, const GemvPlan& plan, const Pointers& at, std::uint32_t i) {
  gemv::Kit kit(k, plan);
  kit.y.emplace(at.y[i]);
  kit.a.emplace(at.w[i]);
  kit.x.emplace(at.x);
  if (plan.problem.bias) kit.bias.emplace(at.bias[i]);
  return kit;
}

bool is_silu(GemvGate gate) { return gate == GemvGate::Silu || gate == GemvGate::SiluPrecise; }

Accuracy accuracy_of(GemvGate gate) {
  const bool precise = gate == GemvGate::SiluPrecise || gate == GemvGate::GeluPrecise;
  return precise ? Accuracy::Precise : Accuracy::Approximate;
}

// The steps of `gelu_tanh` and `swiglu`.
Value<f32> activation(const Value<f32>& x, GemvGate gate) {
  if (is_silu(gate)) return x * sigmoid(x, accuracy_of(gate));
  return x * tanh_gate(x, accuracy_of(gate));
}

double exact_activation(double x, GemvGate gate) {
  if (is_silu(gate)) return x / (1 + std::exp(-x));
  return x * exact_tanh_gate(x);
}

// The rows of a block's strip: the same number for all its matrices.
void store_product(gemv::Kit& kit, const gemv::Segment& segment) {
  gemv::Sums sums = gemv::sums_of(kit, segment, kit.plan.rows);
  gemv::Outputs outputs = gemv::finish_warp(kit, std::move(sums));
  gemv::store_outputs(kit, segment, outputs);
}

// Output `out` of matrix i, with its bias where there is one.
Value<f32> with_bias(gemv::Kit& kit, const Value<f32>& product, const Value<u32>& out,
                     const std::optional<Pred>& reads, const Pointers& at, std::uint32_t i) {
  if (at.bias.empty()) return product;
  KernelBuilder& k = kit.k;
  const ElementType type = kit.problem().y;
  const Ptr<b8> bias = gemv::moved(k, at.bias[i], out, bytes(type));
  const Floats loaded =
      reads ? load_floats_if(k, bias, type, 1, *reads) : load_floats(k, bias, type, 1);
  return product + expand(k, loaded, 1)[0];
}

// The sum of a lane that has an output, with its bias where there is one.
Value<f32> with_bias(gemv::Kit& kit, const gemv::Outputs& outputs, const gemv::Segment& segment,
                     const Pointers& at, std::uint32_t i) {
  const Var<f32>& sum = outputs.sums[0];
  const Value<f32> product(sum.core(), sum.reg());
  if (at.bias.empty()) return product;
  KernelBuilder& k = kit.k;
  const gemv::Number strip = gemv::times(k, segment.strip, kit.plan.strip_outputs());
  const Value<u32> out = gemv::value(k, gemv::add(k, strip, outputs.pieces[0].out));
  const Pred inside = out < kit.problem().n;
  const Pred reads = outputs.owner ? *outputs.owner & inside : inside;
  return with_bias(kit, product, out, reads, at, i);
}

gemv::Segment strip_of(const GemvPlan& plan, const Value<u32>& block) {
  return {block, 0u, static_cast<std::uint32_t>(plan.steps()), block};
}

// Whether both matrices have x in the same form, all at once and at the same place.
bool shares_x(const GemvPlan& first, const GemvPlan& second) {
  const gemv::BlockFormat* format = gemv::block_format(first.problem);
  return format != nullptr && format == gemv::block_format(second.problem) &&
         gemv::ring_bytes(first) == gemv::ring_bytes(second) && first.unroll == second.unroll &&
         gemv::max_segment_steps(first) <= gemv::window_steps(first);
}

// act(a) * b in the lanes that have outputs. Matrices of two types may differ in their steps.
void store_gated(gemv::Kit& first, gemv::Kit& second, const Value<u32>& block, const Pointers& at,
                 const GemvGroup& spec) {
  const gemv::Segment segment = strip_of(first.plan, block);
  gemv::Outputs a = gemv::finish_warp(first, gemv::sums_of(first, segment, first.plan.rows));
  if (shares_x(first.plan, second.plan)) {
    second.has_x = true;
  } else {
    // The second matrix has its x where the first one's is.
    first.k.bar_sync();
  }
  const gemv::Outputs b = gemv::finish_warp(
      second, gemv::sums_of(second, strip_of(second.plan, block), second.plan.rows));
  const Value<f32> up = with_bias(second, b, segment, at, 1);
  const Value<f32> active = activation(with_bias(first, a, segment, at, 0), spec.gate);
  a.sums[0] = active * up;
  gemv::store_outputs(first, segment, a);
}

// The first two matrices, by the blocks of one.
void emit_gated(KernelBuilder& k, const GemvGroup& spec, const Pointers& at) {
  GemvPlan plans[] = {spec.plan(0), spec.plan(1)};
  // Added before the activation, not where the product is stored.
  for (GemvPlan& plan : plans) plan.problem.bias = false;
  const Value<u32> block = k.ctaid_x();
  const auto emit = [&] {
    gemv::Kit first = kit_of(k, plans[0], at, 0);
    gemv::Kit second = kit_of(k, plans[1], at, 1);
    gemv::place(first);
    gemv::place(second);
    store_gated(first, second, block, at, spec);
  };
  // The blocks after these are of the third matrix, or without work.
  k.if_(block < plans[0].blocks, emit);
}

// Matrix i has the blocks from `first` on; those before are of others.
void emit_product(KernelBuilder& k, const GemvGroup& spec, const Pointers& at, std::uint32_t i,
                  std::uint32_t first) {
  const GemvPlan plan = spec.plan(i);
  const Value<u32> block = k.ctaid_x();
  const auto emit = [&] {
    gemv::Kit kit = kit_of(k, plan, at, i);
    gemv::place(kit);
    store_product(kit, strip_of(plan, first == 0 ? block : block - first));
  };
  const bool last = i + 1 == spec.matrices();
  const auto until_end = [&] {
    if (last) {
      emit();
    } else {
      k.if_(block < first + plan.blocks, emit);
    }
  };
  if (first == 0) {
    until_end();
  } else {
    k.if_(block >= first, until_end);
  }
}

// Rows of lanes: the matrices from `first` on that one block multiplies, one, or two with a gate.
void emit_lane_product(KernelBuilder& k, const GemvGroup& spec, const Pointers& at,
                       std::uint32_t first, const Value<u32>& block) {
  const bool gated = spec.gate != GemvGate::None && first == 0;
  std::vector<GemvPlan> plans;
  for (std::uint32_t i = first; i < first + (gated ? 2u : 1u); ++i) {
    plans.push_back(spec.plan(i));
    plans.back().warps_out = kLaneWarps;
  }
  std::vector<gemv::Kit> kits;
  std::vector<gemv::Kit*> all;
  kits.reserve(plans.size());
  for (std::uint32_t i = 0; i < plans.size(); ++i) {
    gemv::Kit& kit = kits.emplace_back(kit_of(k, plans[i], at, first + i));
    kit.thread.emplace(k.tid_x());
    kit.lane.emplace(*kit.thread & 31u);
    all.push_back(&kit);
  }
  gemv::emit_lane_strip(all, block, spec.lane_rows,
                        [&](const Value<u32>& out, const std::vector<Value<f32>>& sums,
                            const std::optional<Pred>& inside) {
                          Value<f32> result = with_bias(kits[0], sums[0], out, inside, at, first);
                          if (gated) {
                            const Value<f32> up = with_bias(kits[1], sums[1], out, inside, at, 1);
                            result.rebind(activation(result, spec.gate) * up);
                          }
                          const auto store = [&] {
                            store_floats(k, gemv::moved(k, *kits[0].y, out, bytes(spec.y)), spec.y,
                                         {result});
                          };
                          if (inside) {
                            k.if_(*inside, store);
                          } else {
                            store();
                          }
                        });
}

void emit_lane_rows(KernelBuilder& k, const GemvGroup& spec, const Pointers& at) {
  const Value<u32> block = k.ctaid_x();
  std::uint32_t begin = 0;
  for (std::uint32_t i = 0; i < spec.matrices(); ++i) {
    if (i == 1 && spec.gate != GemvGate::None) continue;  // with the first
    const std::uint32_t end = begin + lane_blocks(spec, i);
    // A block has one matrix; the gate for races does not see that, but barriers.
    if (begin != 0) k.bar_sync();
    Pred own = block < end;
    if (begin != 0) own.rebind((block >= begin) & own);
    k.if_(own, [&] { emit_lane_product(k, spec, at, i, begin == 0 ? block : block - begin); });
    begin = end;
  }
}

// For x, which is all in shared memory.
void check_lane_memory(const GemvGroup& spec, const ptx::Target& target) {
  const std::uint64_t bytes = std::uint64_t{spec.k} / 32 * gemv::kGroupBytes;
  if (bytes <= target.shared_per_block_opt_in) return;
  refuse(
      format_text("k is {}; with lane_rows x takes {} B of shared memory, and a block on {} may "
                  "have {} B",
                  spec.k, bytes, target.name, target.shared_per_block_opt_in));
}

}  // namespace

bool GemvGroup::is_repacked(std::uint32_t i) const noexcept {
  return repacked && !repacked_fields(type(i)).empty();
}

std::uint64_t GemvGroup::elements(std::uint32_t i) const noexcept {
  return std::uint64_t{rows(i)} * (is_repacked(i) ? repacked_bytes(type(i), k) : k);
}

GemvPlan GemvGroup::plan(std::uint32_t i) const {
  GemvPlan plan;
  GemvProblem& p = plan.problem;
  p.k = k;
  p.n = rows(i);
  p.layout = GemvLayout::R;
  p.weights = type(i);
  p.repacked = is_repacked(i);
  p.x = x;
  p.y = y;
  p.bias = bias;
  p.a_alignment = 16;
  p.x_alignment = 16;
  p.y_alignment = bytes(y);
  plan.load_bytes = widest_load(p);
  plan.warps_out = warps_of(*this);
  plan.unroll = 1;
  plan.rows = warp_rows / plan.warp_outputs();  // of one row, as `rows` is still 1
  plan.blocks = static_cast<std::uint32_t>(plan.strips());
  return plan;
}

void GemvGroup::check_layout(const ptx::Target& target) const {
  check_group(*this);
  for (std::uint32_t i = 0; i < matrices(); ++i) check(plan(i), target);
  if (lane_rows != 0) check_lane_memory(*this, target);
}

BuiltKernel GemvGroup::build(const ptx::Target& target) const {
  check_layout(target);
  KernelBuilder builder(kernel_name<GemvGroup>, target.name);
  if (lane_rows != 0) {
    builder.required_threads(32 * kLaneWarps);
    builder.pragma("nounroll");
    builder.contract(Contract::Forbid);
    emit_lane_rows(builder, *this, pointers_of(builder, *this));
    return builder.build();
  }
  const GemvPlan first = plan(0);
  gemv::begin_kernel(builder, first);
  const Pointers at = pointers_of(builder, *this);
  std::uint32_t begin = 0;
  if (gate != GemvGate::None) {
    emit_gated(builder, *this, at);
    begin = first.blocks;
  }
  for (std::uint32_t i = gate == GemvGate::None ? 0 : 2; i < matrices(); ++i) {
    // A block has one matrix; the gate for races does not see that, but barriers.
    if (begin != 0) builder.bar_sync();
    emit_product(builder, *this, at, i, begin);
    begin += plan(i).blocks;
  }
  return builder.build();
}

LaunchGeometry GemvGroup::geometry() const {
  check_group(*this);
  if (lane_rows != 0) {
    LaunchGeometry geometry =
        one_dimensional(kernel_name<GemvGroup>, n0, 32 * kLaneWarps * lane_rows, 32 * kLaneWarps);
    geometry.dynamic_shared_bytes = k / 32 * gemv::kGroupBytes;
    for (std::uint32_t i = gate == GemvGate::None ? 1 : 2; i < matrices(); ++i) {
      geometry.grid.x += lane_blocks(*this, i);
    }
    return geometry;
  }
  LaunchGeometry geometry = one_dimensional(kernel_name<GemvGroup>, n0, warps_of(*this) * warp_rows,
                                            32 * warps_of(*this));
  for (std::uint32_t i = 0; i < matrices(); ++i) {
    const auto shared = static_cast<std::uint32_t>(gemv::dynamic_bytes(plan(i)));
    geometry.dynamic_shared_bytes = std::max(geometry.dynamic_shared_bytes, shared);
    if (i == 2 || (i == 1 && gate == GemvGate::None)) geometry.grid.x += plan(i).blocks;
  }
  return geometry;
}

KernelCost GemvGroup::cost() const noexcept {
  KernelCost cost{.bytes_read = bytes(x, k)};
  for (std::uint32_t i = 0; i < matrices(); ++i) {
    const std::uint64_t outputs = rows(i);
    cost.bytes_read += outputs * bytes(type(i), k) + (bias ? outputs * bytes(y) : 0);
    if (i != 1 || gate == GemvGate::None) cost.bytes_written += outputs * bytes(y);
    cost.flops += 2 * outputs * k;
  }
  return cost;
}

KernelKey Describe<GemvGroup>::key(const K& spec) {
  const auto pair = [](std::uint64_t high, std::uint32_t low) { return high << 32 | low; };
  const auto type = [](ElementType of, unsigned at) {
    return static_cast<std::uint64_t>(of) << at;
  };
  KernelKey key;
  key.values = {pair(spec.k, spec.n0), pair(spec.n1, spec.n2),
                type(spec.w0, 0) | type(spec.w1, 8) | type(spec.w2, 16) | type(spec.x, 24) |
                    type(spec.y, 32) | static_cast<std::uint64_t>(spec.gate) << 40 |
                    std::uint64_t{spec.bias} << 48 | std::uint64_t{spec.repacked} << 49 |
                    std::uint64_t{spec.warp_rows} << 56 | std::uint64_t{spec.lane_rows} << 50};
  return key;
}

void Describe<GemvGroup>::reference(const K& spec, HostOperands& host) {
  std::vector<HostOperands::Operand> products;
  for (std::uint32_t i = 0; i < spec.matrices(); ++i) {
    const std::string number = std::to_string(i);
    HostOperands one;
    one.all = {{"y", std::vector<double>(spec.rows(i)), {}},
               {"a", host.input("w" + number), host["w" + number].magnitude},
               {"x", host.input("x"), {}}};
    if (spec.bias) one.all.push_back({"bias", host.input("bias" + number), {}});
    Describe<GemvProblem>::reference(spec.plan(i).problem, one);
    products.push_back(std::move(one["y"]));
  }
  for (std::uint32_t i = 0; i < spec.matrices(); ++i) {
    if (i == 1 && spec.gate != GemvGate::None) continue;
    HostOperands::Operand& y = host["y" + std::to_string(i)];
    y.values = products[i].values;
    y.magnitude = products[i].magnitude;
  }
  if (spec.gate == GemvGate::None) return;
  // An activation's slope is at most 1.13; magnitudes are those of products of errors.
  constexpr double kSlope = 1.13;
  HostOperands::Operand& y = host["y0"];
  y.magnitude.resize(y.values.size());
  for (std::size_t j = 0; j < y.values.size(); ++j) {
    const double a = exact_activation(products[0].values[j], spec.gate);
    y.values[j] = a * products[1].values[j];
    y.magnitude[j] = kSlope * products[0].magnitude[j] * std::abs(products[1].values[j]) +
                     std::abs(a) * products[1].magnitude[j];
  }
}

// The errors of the sums; with a gate those of its exp or tanh as well, 2^-10 of the argument's
// magnitude at most (kMathBounds), and two products.
ErrorBound Describe<GemvGroup>::bound(const K& spec) {
  ErrorBound bound{};
  for (std::uint32_t i = 0; i < spec.matrices(); ++i) {
    // A lane's own row is one chain of additions.
    const GemvPlan plan = spec.plan(i);
    const ErrorBound own = spec.lane_rows != 0 ? Describe<GemvProblem>::bound(plan.problem)
                                               : Describe<Gemv>::bound({plan});
    bound.relative = std::max(bound.relative, own.relative);
  }
  if (spec.gate == GemvGate::None) return bound;
  const std::string_view function = is_silu(spec.gate) ? "sigmoid" : "tanh";
  const MathBound& math = math_bound(function, accuracy_of(spec.gate));
  return {.relative = 3 * bound.relative + (math.ulp + 6) * 0x1p-23, .absolute = 1e-36};
}

}  // namespace ptxgen::inline v0
