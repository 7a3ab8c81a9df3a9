// src/kernels/gemv/layout_r.cpp - sums over a matrix with n rows of k columns
#include <algorithm>

#include "kernels/gemv/emit.hpp"

namespace ptxgen::inline v0::gemv {

namespace {

// Elements along k of one load of the warp.
std::uint32_t warp_elements(const Kit& kit) { return 32 * kit.v; }

std::uint32_t factor_alignment(const Kit& kit) {
  return std::min(kit.problem().x_alignment, kit.v * bytes(kit.problem().x));
}

// What some loads along k bring: a row's weights each, and the elements of x for all of them.
struct Step {
  std::vector<std::vector<Floats>> rows;  ///< of each load, of each row
  std::vector<Floats> factors;
};

void multiply(Kit& kit, const Step& step, std::uint32_t count, Sums& sums) {
  KernelBuilder& k = kit.k;
  for (std::size_t u = 0; u < step.factors.size(); ++u) {
    const std::vector<Value<f32>> x = expand(k, step.factors[u], count);
    for (std::size_t row = 0; row < step.rows[u].size(); ++row) {
      const std::vector<Value<f32>> w = expand(k, step.rows[u][row], count);
      for (std::uint32_t i = 0; i < count; ++i) k.fma_inplace(sums[row], w[i], x[i]);
    }
  }
}

// `loads` full loads of `rows` rows.
Step load_step(Kit& kit, const Ptr<b8>& weights, const Ptr<b8>& factors, std::uint32_t loads,
               std::uint32_t rows) {
  KernelBuilder& k = kit.k;
  Step step;
  for (std::uint32_t u = 0; u < loads; ++u) {
    step.rows.emplace_back();
    for (std::uint32_t row = 0; row < rows; ++row) {
      const Ptr<b8> at = weights + (row * kit.pitch + u * 32 * kit.plan.load_bytes);
      step.rows[u].push_back(load_floats(k, at, kit.problem().weights, kit.v, kit.weight_load()));
    }
  }
  for (std::uint32_t u = 0; u < loads; ++u) {
    const Ptr<b8> at = factors + u * warp_elements(kit) * bytes(kit.problem().x);
    step.factors.push_back(
        load_run(k, at, kit.problem().x, kit.v, factor_alignment(kit), kit.factor_load()));
  }
  return step;
}

// The same where `p` holds, `count` elements of each lane at most as many as a load has; zeros
// elsewhere.
Step load_if(Kit& kit, const Ptr<b8>& weights, const Ptr<b8>& factors, std::uint32_t count,
             std::uint32_t rows, const Pred& p) {
  KernelBuilder& k = kit.k;
  Step step;
  step.rows.emplace_back();
  for (std::uint32_t row = 0; row < rows; ++row) {
    step.rows[0].push_back(load_floats_if(k, weights + row * kit.pitch, kit.problem().weights,
                                          count, p, kit.weight_load()));
  }
  // As f32 from here on: a lane's elements may come by several loads.
  Floats all;
  const std::uint32_t element = bytes(kit.problem().x);
  const std::uint32_t take = std::min(count, std::min(factor_alignment(kit), 16u) / element);
  for (std::uint32_t i = 0; i < count; i += take) {
    const Floats part =
        load_floats_if(k, factors + i * element, kit.problem().x, take, p, kit.factor_load());
    for (const Value<f32>& x : expand(k, part, take)) all.whole.push_back(x);
  }
  step.factors.push_back(all);
  return step;
}

// The `left` elements of a row's end that a warp has: full loads, then a load of some lanes, then
// elements side by side. Everything is asked for before the first product.
void add_tail(Kit& kit, const Ptr<b8>& weights, const Ptr<b8>& factors, std::uint32_t left,
              std::uint32_t rows, Sums& sums) {
  KernelBuilder& k = kit.k;
  const std::uint32_t loads = left / warp_elements(kit);
  const std::uint32_t rest = left % warp_elements(kit);
  const std::uint32_t lanes = rest / kit.v;
  const std::uint32_t single = rest % kit.v;
  const std::uint32_t element = bytes(kit.problem().weights);
  const std::uint32_t factor = bytes(kit.problem().x);
  const Step full = load_step(kit, weights, factors, loads, rows);
  const Ptr<b8> rest_weights = weights + loads * 32 * kit.plan.load_bytes;
  const Ptr<b8> rest_factors = factors + loads * warp_elements(kit) * factor;
  std::optional<Step> vectors, singles;
  if (lanes != 0) {
    vectors.emplace(load_if(kit, rest_weights, rest_factors, kit.v, rows, *kit.lane < lanes));
  }
  if (single != 0) {
    // A lane's pointers are `lane * v` elements into the row; these are `lane` elements.
    const Value<u32> back = k.mul_lo(*kit.lane, (kit.v - 1) * element);
    const Value<u32> factor_back = k.mul_lo(*kit.lane, (kit.v - 1) * factor);
    const Ptr<b8> at = rest_weights + lanes * kit.plan.load_bytes - back;
    const Ptr<b8> factor_at = rest_factors + lanes * kit.v * factor - factor_back;
    singles.emplace(load_if(kit, at, factor_at, 1, rows, *kit.lane < single));
  }
  multiply(kit, full, kit.v, sums);
  if (vectors) multiply(kit, *vectors, kit.v, sums);
  if (singles) multiply(kit, *singles, 1, sums);
}

// Where the thread's weights and elements of x of a segment begin.
struct Place {
  Ptr<b8> weights, factors;
};
Place place_of(Kit& kit, const Segment& segment) {
  KernelBuilder& k = kit.k;
  const std::uint64_t step = kit.plan.step_elements();
  const Ptr<b8> strip = moved(k, *kit.weights, segment.strip, kit.plan.strip_outputs() * kit.pitch);
  const Ptr<b8> weights = moved(k, strip, segment.first, step * bytes(kit.problem().weights));
  const Ptr<b8> factors = moved(k, *kit.factors, segment.first, step * bytes(kit.problem().x));
  return {weights, factors};
}

void add_rows(Kit& kit, const Segment& segment, const Number& steps, std::uint32_t rows,
              Sums& sums) {
  KernelBuilder& k = kit.k;
  const Place begin = place_of(kit, segment);
  auto weights = k.var(begin.weights);
  auto factors = k.var(begin.factors);
  repeat(k, steps, [&] {
    multiply(kit, load_step(kit, here(weights), here(factors), kit.plan.unroll, rows), kit.v, sums);
    weights += std::uint64_t{kit.plan.step_elements()} * bytes(kit.problem().weights);
    factors += std::uint64_t{kit.plan.step_elements()} * bytes(kit.problem().x);
  });
  if_tail(kit, segment, [&](std::uint32_t left) {
    add_tail(kit, here(weights), here(factors), left, rows, sums);
  });
}

// Emits `body` for the warps that have rows, with their number: all that a warp may have, or the
// few that the last one is left with.
void for_rows(Kit& kit, const Segment& segment, const std::function<void(std::uint32_t)>& body) {
  KernelBuilder& k = kit.k;
  const std::uint32_t n = kit.problem().n;
  const std::uint32_t some = n % kit.plan.rows;
  const std::uint32_t full = n - some;
  if (n % kit.plan.strip_outputs() == 0) {
    body(kit.plan.rows);
    return;
  }
  const Number strip = times(k, segment.strip, kit.plan.strip_outputs());
  const Number row = add(k, strip, kit.row ? Number(*kit.row) : Number(0u));
  if (known(row) != nullptr) {  // one warp, one strip
    body(some);
    return;
  }
  const Value<u32> first = value(k, row);
  if (full != 0) k.if_(first < full, [&] { body(kit.plan.rows); });
  if (some != 0) k.if_(first == full, [&] { body(some); });
}

}  // namespace

void place_r(Kit& kit) {
  KernelBuilder& k = kit.k;
  const std::uint32_t element = bytes(kit.problem().weights);
  kit.weights.emplace(moved(k, *kit.a, *kit.lane, kit.plan.load_bytes));
  kit.factors.emplace(moved(k, *kit.x, *kit.lane, kit.v * bytes(kit.problem().x)));
  kit.across.emplace(*kit.lane);
  kit.out.emplace(*kit.lane);
  if (kit.plan.threads() == 32) return;
  const Value<u32> warp = *kit.thread / 32u;
  Value<u32> warp_out(warp);
  if (kit.plan.warps_k > 1) {
    kit.warp_k.emplace(kit.plan.warps_out == 1 ? warp : warp / kit.plan.warps_out);
    kit.weights->rebind(moved(k, *kit.weights, *kit.warp_k, std::uint64_t{kit.piece()} * element));
    kit.factors->rebind(
        moved(k, *kit.factors, *kit.warp_k, std::uint64_t{kit.piece()} * bytes(kit.problem().x)));
    if (kit.plan.warps_out == 1) return;
    warp_out.rebind(warp % kit.plan.warps_out);
  }
  const Value<u32> row = kit.plan.rows == 1 ? warp_out : k.mul_lo(warp_out, kit.plan.rows);
  kit.weights->rebind(moved(k, *kit.weights, warp_out, kit.plan.rows * kit.pitch));
  kit.out->rebind(row + *kit.lane);
  kit.row.emplace(row);
}

void accumulate_r(Kit& kit, const Segment& segment, Sums& sums) {
  if (kit.problem().k == 0) return;
  const Number steps = full_steps(kit, segment);
  for_rows(kit, segment, [&](std::uint32_t rows) { add_rows(kit, segment, steps, rows, sums); });
}

void request_r(Kit& kit, const Segment& segment) {
  if (kit.problem().k == 0) return;
  const Number steps = full_steps(kit, segment);
  if_any(kit.k, steps, [&] {
    for_rows(kit, segment, [&](std::uint32_t rows) {
      const Ptr<b8> weights = place_of(kit, segment).weights;
      for (std::uint32_t u = 0; u < kit.plan.unroll; ++u) {
        for (std::uint32_t row = 0; row < rows; ++row) {
          prefetch(kit.k, weights + (row * kit.pitch + u * 32 * kit.plan.load_bytes));
        }
      }
    });
  });
}

}  // namespace ptxgen::inline v0::gemv
