// src/kernels/gemv/layout_r.cpp - sums over a matrix with n rows of k columns
#include <algorithm>

#include "kernels/gemv/emit.hpp"
#include "kernels/gemv/ring_bulk.hpp"

namespace ptxgen::inline v0::gemv {

namespace {

// Elements along k of one load of the warp.
std::uint32_t warp_elements(const Kit& kit) { return 32 * kit.v; }

std::uint32_t factor_alignment(const Kit& kit) {
  return std::min(kit.problem().x_alignment, kit.v * bytes(kit.problem().x));
}

// If a lane's elements of x are 32 bytes (two loads), two adjacent lanes load each other's half:
// both first loads read the first lane's bytes, both second loads the second lane's, and then they
// swap halves. So each load uses full sectors.
bool swaps_halves(const Kit& kit) {
  return kit.v * bytes(kit.problem().x) == 32 && factor_alignment(kit) >= 16;
}

// Data of one load along k: weights of each row, and the elements of x for all rows.
struct Step {
  std::vector<Floats> rows;
  std::vector<Floats> factors;
};

std::vector<Value<f32>> swapped(Kit& kit, const Floats& first, const Floats& second) {
  KernelBuilder& k = kit.k;
  std::vector<Value<f32>> low, high;
  for (std::uint32_t i = 0; i < 4; ++i) {
    const Value<f32> sent = k.selp(first.full[i], second.full[i], *kit.odd);
    const Value<f32> taken = k.shfl_bfly(sent, 1u);
    low.push_back(k.selp(taken, first.full[i], *kit.odd));
    high.push_back(k.selp(second.full[i], taken, *kit.odd));
  }
  for (const Value<f32>& x : high) low.push_back(x);
  return low;
}

// Loads that all lanes take part in at the addresses of the warp's load `u`.
Step load_step(Kit& kit, const Ptr<b8>& weights, std::uint32_t u, std::uint32_t rows) {
  Step step;
  for (std::uint32_t row = 0; row < rows; ++row) {
    const Ptr<b8> at = weights + (row * kit.pitch + u * 32 * kit.plan.load_bytes);
    step.rows.push_back(load_floats(kit.k, at, kit.problem().weights, kit.v, kit.weight_load()));
  }
  return step;
}
void load_factors(Kit& kit, const Ptr<b8>& factors, std::uint32_t u, Step& step) {
  KernelBuilder& k = kit.k;
  const Ptr<b8> at = factors + u * warp_elements(kit) * bytes(kit.problem().x);
  const ElementType type = kit.problem().x;
  if (swaps_halves(kit)) {
    step.factors.push_back(load_floats(k, at, type, 4, kit.factor_load()));
    step.factors.push_back(load_floats(k, at + 32, type, 4, kit.factor_load()));
  } else {
    step.factors.push_back(load_run(k, at, type, kit.v, factor_alignment(kit), kit.factor_load()));
  }
}

// The same where a lane is below `lanes`, `count` elements of each; zeros elsewhere.
Step load_step_if(Kit& kit, const Ptr<b8>& weights, std::uint32_t rows, std::uint32_t count,
                  std::uint32_t lanes) {
  KernelBuilder& k = kit.k;
  const Pred p = *kit.lane < lanes;
  Step step;
  for (std::uint32_t row = 0; row < rows; ++row) {
    step.rows.push_back(load_floats_if(k, weights + row * kit.pitch, kit.problem().weights, count,
                                       p, kit.weight_load()));
  }
  return step;
}
void load_factors_if(Kit& kit, const Ptr<b8>& factors, std::uint32_t count, std::uint32_t lanes,
                     Step& step) {
  KernelBuilder& k = kit.k;
  const ElementType type = kit.problem().x;
  if (count == kit.v && swaps_halves(kit)) {
    // Depends on the owner of the sector.
    const Value<u32> even = *kit.lane & 30u;
    const Pred first = even < lanes;
    step.factors.push_back(load_floats_if(k, factors, type, 4, first, kit.factor_load()));
    const Value<u32> odd = even + 1u;
    const Pred second = odd < lanes;
    step.factors.push_back(load_floats_if(k, factors + 32, type, 4, second, kit.factor_load()));
    return;
  }
  const Pred p = *kit.lane < lanes;
  // As f32 from here on, because several loads may supply a lane's elements.
  Floats all;
  const std::uint32_t element = bytes(type);
  const std::uint32_t take = std::min(count, std::min(factor_alignment(kit), 16u) / element);
  for (std::uint32_t i = 0; i < count; i += take) {
    const Floats part = load_floats_if(k, factors + i * element, type, take, p, kit.factor_load());
    for (const Value<f32>& x : expand(k, part, take)) all.full.push_back(x);
  }
  step.factors.push_back(all);
}

// Into the sums of row `m` of a batch.
void multiply(Kit& kit, const Step& step, std::uint32_t count, Sums& sums, std::uint32_t m = 0) {
  KernelBuilder& k = kit.k;
  const std::vector<Value<f32>> x = step.factors.size() == 2
                                        ? swapped(kit, step.factors[0], step.factors[1])
                                        : expand(k, step.factors[0], count);
  for (std::size_t row = 0; row < step.rows.size(); ++row) {
    const std::vector<Value<f32>> w = expand(k, step.rows[row], count);
    for (std::uint32_t i = 0; i < count; ++i)
      k.fma_inplace(sums[m * kit.plan.rows + row], w[i], x[i]);
  }
}

// `loads` full loads of `rows` rows: the weights first, then x.
std::vector<Step> load_steps(Kit& kit, const Ptr<b8>& weights, const Ptr<b8>& factors,
                             std::uint32_t loads, std::uint32_t rows) {
  std::vector<Step> steps;
  for (std::uint32_t u = 0; u < loads; ++u) steps.push_back(load_step(kit, weights, u, rows));
  for (std::uint32_t u = 0; u < loads; ++u) load_factors(kit, factors, u, steps[u]);
  return steps;
}

// The `left` elements of a row's end: full loads, then a load of some lanes, then single elements.
// All loads are issued before the first product.
void add_tail(Kit& kit, const Ptr<b8>& weights, const Ptr<b8>& factors, std::uint32_t left,
              std::uint32_t rows, Sums& sums) {
  KernelBuilder& k = kit.k;
  const std::uint32_t loads = left / warp_elements(kit);
  const std::uint32_t rest = left % warp_elements(kit);
  const std::uint32_t lanes = rest / kit.v;
  const std::uint32_t single = rest % kit.v;
  const std::uint32_t element = bytes(kit.problem().weights);
  const std::uint32_t factor = bytes(kit.problem().x);
  const std::vector<Step> full = load_steps(kit, weights, factors, loads, rows);
  const Ptr<b8> rest_weights = weights + loads * 32 * kit.plan.load_bytes;
  const Ptr<b8> rest_factors = factors + loads * warp_elements(kit) * factor;
  std::optional<Step> vectors, singles;
  if (lanes != 0) {
    vectors.emplace(load_step_if(kit, rest_weights, rows, kit.v, lanes));
    load_factors_if(kit, rest_factors, kit.v, lanes, *vectors);
  }
  if (single != 0) {
    // A lane's pointers are `lane * v` elements into the row; these are `lane` elements.
    const Value<u32> back = k.mul_lo(*kit.lane, (kit.v - 1) * element);
    Value<u32> factor_back = k.mul_lo(*kit.lane, (kit.v - 1) * factor);
    if (swaps_halves(kit)) {
      const Value<u32> half = (*kit.lane & 1u) << 4u;
      factor_back.rebind(factor_back - half);
    }
    const Ptr<b8> at = rest_weights + lanes * kit.plan.load_bytes - back;
    const Ptr<b8> factor_at = rest_factors + lanes * kit.v * factor - factor_back;
    singles.emplace(load_step_if(kit, at, rows, 1, single));
    load_factors_if(kit, factor_at, 1, single, *singles);
  }
  for (const Step& step : full) multiply(kit, step, kit.v, sums);
  if (vectors) multiply(kit, *vectors, kit.v, sums);
  if (singles) multiply(kit, *singles, 1, sums);
}

// A step for all rows of a batch: its weights first, then x of one row after the other.
void add_batch(Kit& kit, const Ptr<b8>& weights, const Ptr<b8>& factors, std::uint32_t loads,
               std::uint32_t rows, Sums& sums) {
  std::vector<Step> steps;
  for (std::uint32_t u = 0; u < loads; ++u) steps.push_back(load_step(kit, weights, u, rows));
  for (std::uint32_t m = 0; m < kit.plan.batch; ++m) {
    kit.for_batch_row(m, [&] {
      for (std::uint32_t u = 0; u < loads; ++u) {
        Step step{steps[u].rows, {}};
        load_factors(kit, factors + m * kit.x_pitch(), u, step);
        multiply(kit, step, kit.v, sums, m);
      }
    });
  }
}

// The end of a row, for all rows of a batch: loads of all lanes, of some, and single elements.
void add_batch_tail(Kit& kit, const Ptr<b8>& weights, const Ptr<b8>& factors, std::uint32_t left,
                    std::uint32_t rows, Sums& sums) {
  KernelBuilder& k = kit.k;
  const std::uint32_t loads = left / warp_elements(kit);
  const std::uint32_t rest = left % warp_elements(kit);
  add_batch(kit, weights, factors, loads, rows, sums);
  // Of the first elements after the full loads; a lane's pointers are `lane * v` elements further.
  const auto add_some = [&](const Ptr<b8>& at, const Ptr<b8>& x, std::uint32_t count,
                            std::uint32_t lanes) {
    if (lanes == 0) return;
    const Step loaded = load_step_if(kit, at, rows, count, lanes);
    for (std::uint32_t m = 0; m < kit.plan.batch; ++m) {
      kit.for_batch_row(m, [&] {
        Step step{loaded.rows, {}};
        load_factors_if(kit, x + m * kit.x_pitch(), count, lanes, step);
        multiply(kit, step, count, sums, m);
      });
    }
  };
  const std::uint32_t element = bytes(kit.problem().weights);
  const std::uint32_t factor = bytes(kit.problem().x);
  const Ptr<b8> rest_weights = weights + loads * 32 * kit.plan.load_bytes;
  const Ptr<b8> rest_factors = factors + loads * warp_elements(kit) * factor;
  const std::uint32_t lanes = rest / kit.v;
  add_some(rest_weights, rest_factors, kit.v, lanes);
  if (rest % kit.v == 0) return;
  const Value<u32> back = k.mul_lo(*kit.lane, (kit.v - 1) * element);
  Value<u32> factor_back = k.mul_lo(*kit.lane, (kit.v - 1) * factor);
  if (swaps_halves(kit)) factor_back.rebind(factor_back - ((*kit.lane & 1u) << 4u));
  const Ptr<b8> last_factors = rest_factors + lanes * kit.v * factor - factor_back;
  const Ptr<b8> last_weights = rest_weights + lanes * kit.plan.load_bytes - back;
  add_some(last_weights, last_factors, 1, rest % kit.v);
}

// Start of the thread's weights and elements of x in a segment.
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

// The products of one step from shared memory.
void add_step(Kit& kit, AsyncStages& stages, const Ptr<b8>& factors, std::uint32_t rows,
              Sums& sums) {
  std::vector<Step> steps(kit.plan.unroll);
  for (std::uint32_t u = 0; u < kit.plan.unroll; ++u) load_factors(kit, factors, u, steps[u]);
  const std::vector<Floats> loaded = take_weights(kit, stages);
  for (std::uint32_t u = 0; u < kit.plan.unroll; ++u) {
    const auto begin = loaded.begin() + u * rows;
    steps[u].rows = std::vector<Floats>(begin, begin + rows);
    multiply(kit, steps[u], kit.v, sums);
  }
}

void add_rows(Kit& kit, const Segment& segment, const Number& steps, std::uint32_t rows,
              Sums& sums) {
  KernelBuilder& k = kit.k;
  const Place begin = place_of(kit, segment);
  auto weights = k.var(begin.weights);
  auto factors = k.var(begin.factors);
  const std::uint64_t step_bytes =
      std::uint64_t{kit.plan.step_elements()} * bytes(kit.problem().weights);
  const auto next_factors = [&] {
    factors += std::uint64_t{kit.plan.step_elements()} * bytes(kit.problem().x);
  };
  if (kit.plan.path == GemvPath::Async) {
    AsyncStages stages = async_stages(kit, step_bytes, weights);
    for (std::uint32_t u = 0; u < kit.plan.unroll; ++u) {
      for (std::uint32_t row = 0; row < rows; ++row) {
        stages.add_load(row * kit.pitch + u * 32 * kit.plan.load_bytes);
      }
    }
    run_async(kit, stages, steps, [&] {
      add_step(kit, stages, factors.view(), rows, sums);
      next_factors();
    });
  } else if (kit.plan.batch > 1) {
    repeat(k, steps, [&] {
      add_batch(kit, weights.view(), factors.view(), kit.plan.unroll, rows, sums);
      weights += step_bytes;
      next_factors();
    });
  } else {
    repeat(k, steps, [&] {
      for (const Step& step :
           load_steps(kit, weights.view(), factors.view(), kit.plan.unroll, rows)) {
        multiply(kit, step, kit.v, sums);
      }
      weights += step_bytes;
      next_factors();
    });
  }
  if_tail(kit, segment, [&](std::uint32_t left) {
    if (kit.plan.batch > 1) {
      add_batch_tail(kit, weights.view(), factors.view(), left, rows, sums);
    } else {
      add_tail(kit, weights.view(), factors.view(), left, rows, sums);
    }
  });
}

// Full steps from the ring; the rest at the end of k is read from memory.
void add_bulk(Kit& kit, const Segment& segment, Sums& sums) {
  KernelBuilder& k = kit.k;
  const Place begin = place_of(kit, segment);
  const std::uint32_t step = kit.plan.step_elements();
  const std::uint32_t row_bytes = step * bytes(kit.problem().weights);
  auto factors = k.var(begin.factors);
  std::vector<Step> steps(kit.plan.unroll);
  const auto load_x = [&] {
    for (std::uint32_t u = 0; u < kit.plan.unroll; ++u) {
      steps[u].factors.clear();
      load_factors(kit, factors.view(), u, steps[u]);
    }
  };
  const auto add_step = [&] {
    for_rows(kit, segment, [&](std::uint32_t rows) {
      for (std::uint32_t u = 0; u < kit.plan.unroll; ++u) {
        steps[u].rows.clear();
        for (std::uint32_t row = 0; row < rows; ++row) {
          steps[u].rows.push_back(
              kit.bulk->load(row * std::uint64_t{row_bytes} + u * 32 * kit.plan.load_bytes));
        }
      }
      for (const Step& part : steps) multiply(kit, part, kit.v, sums);
    });
    factors += std::uint64_t{step} * bytes(kit.problem().x);
  };
  if (kit.bulk != nullptr) kit.bulk->run(segment, load_x, add_step);
  const Number count = BulkRing::steps_of(kit, segment);
  for_rows(kit, segment, [&](std::uint32_t rows) {
    if_rest(kit, segment, [&](std::uint32_t left) {
      const Ptr<b8> weights = moved(k, begin.weights, count, row_bytes);
      add_tail(kit, weights, factors.view(), left, rows, sums);
    });
  });
}

}  // namespace

void place_r(Kit& kit) {
  KernelBuilder& k = kit.k;
  const std::uint32_t element = bytes(kit.problem().weights);
  kit.weights.emplace(moved(k, *kit.a, *kit.lane, kit.plan.load_bytes));
  kit.factors.emplace(moved(k, *kit.x, *kit.lane, kit.v * bytes(kit.problem().x)));
  if (swaps_halves(kit)) {
    const Value<u32> odd = *kit.lane & 1u;
    kit.odd.emplace(odd != 0u);
    kit.factors->rebind(*kit.factors - (odd << 4u));
  }
  kit.across.emplace(*kit.lane);
  kit.out.emplace(*kit.lane);
  if (kit.plan.threads() == 32) return;
  const Value<u32> warp = *kit.thread >> 5u;
  Value<u32> warp_out(warp);
  if (kit.plan.warps_k > 1) {
    kit.warp_k.emplace(quotient(k, warp, 32, kit.plan.warps_out));
    kit.weights->rebind(moved(k, *kit.weights, *kit.warp_k, std::uint64_t{kit.piece()} * element));
    kit.factors->rebind(
        moved(k, *kit.factors, *kit.warp_k, std::uint64_t{kit.piece()} * bytes(kit.problem().x)));
    if (kit.plan.warps_out == 1) return;
    warp_out.rebind(remainder(k, warp, *kit.warp_k, kit.plan.warps_out));
  }
  const Value<u32> row = kit.plan.rows == 1 ? warp_out : k.mul_lo(warp_out, kit.plan.rows);
  kit.weights->rebind(moved(k, *kit.weights, warp_out, kit.plan.rows * kit.pitch));
  kit.out->rebind(row + *kit.lane);
  kit.row.emplace(row);
}

void accumulate_r(Kit& kit, const Segment& segment, Sums& sums) {
  if (kit.problem().k == 0) return;
  if (kit.plan.path == GemvPath::Bulk) {
    add_bulk(kit, segment, sums);
    return;
  }
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
