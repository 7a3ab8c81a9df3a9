// src/kernels/gemv/layout_t.cpp - sums over a matrix with k rows of n columns
#include <algorithm>

#include "kernels/gemv/emit.hpp"
#include "kernels/gemv/ring_bulk.hpp"

namespace ptxgen::inline v0::gemv {

namespace {

// Start of the thread's weights and elements of x in a segment.
struct Place {
  Ptr<b8> weights, factors;
};
Place place_of(Kit& kit, const Segment& segment) {
  KernelBuilder& k = kit.k;
  const std::uint64_t strip_bytes =
      std::uint64_t{kit.plan.strip_outputs()} * bytes(kit.problem().weights);
  const Ptr<b8> strip = moved(k, *kit.weights, segment.strip, strip_bytes);
  const Ptr<b8> weights = moved(k, strip, segment.first, kit.plan.step_elements() * kit.pitch);
  const Ptr<b8> factors = moved(k, *kit.factors, segment.first,
                                std::uint64_t{kit.plan.step_elements()} * bytes(kit.problem().x));
  return {weights, factors};
}

// Alignment of a warp's first element of x in a step.
std::uint32_t factor_alignment(const Kit& kit) {
  const std::uint32_t run = kit.piece() * bytes(kit.problem().x);
  return std::min(kit.problem().x_alignment, run & (~run + 1));
}

std::vector<Value<f32>> load_factors(Kit& kit, const Ptr<b8>& factors, std::uint32_t rows) {
  const Floats run =
      load_run(kit.k, factors, kit.problem().x, rows, factor_alignment(kit), kit.factor_load());
  return expand(kit.k, run, rows);
}

// Products of some rows with the first `columns` columns of the lane.
void multiply(Kit& kit, const std::vector<Floats>& rows, const std::vector<Value<f32>>& x,
              std::uint32_t columns, Sums& sums) {
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const std::vector<Value<f32>> w = expand(kit.k, rows[row], columns);
    for (std::uint32_t c = 0; c < columns; ++c) kit.k.fma_inplace(sums[c], w[c], x[row]);
  }
}

// Loads all weights of `rows` rows, then their elements of x.
void add_rows(Kit& kit, const Ptr<b8>& weights, const Ptr<b8>& factors, std::uint32_t rows,
              std::uint32_t columns, Sums& sums) {
  const ElementType type = kit.problem().weights;
  const std::uint32_t alignment = columns == kit.v ? kit.plan.load_bytes : bytes(type);
  std::vector<Floats> loaded;
  for (std::uint32_t row = 0; row < rows; ++row) {
    const Ptr<b8> at = weights + row * kit.pitch;
    loaded.push_back(load_run(kit.k, at, type, columns, alignment, kit.weight_load()));
  }
  multiply(kit, loaded, load_factors(kit, factors, rows), columns, sums);
}

void add_columns(Kit& kit, const Segment& segment, const Number& steps, std::uint32_t columns,
                 Sums& sums) {
  KernelBuilder& k = kit.k;
  const Place begin = place_of(kit, segment);
  auto weights = k.var(begin.weights);
  auto factors = k.var(begin.factors);
  const std::uint64_t step_bytes = kit.plan.step_elements() * kit.pitch;
  const auto next_factors = [&] {
    factors += std::uint64_t{kit.plan.step_elements()} * bytes(kit.problem().x);
  };
  if (kit.plan.path == GemvPath::Async && columns == kit.v) {
    AsyncStages stages = async_stages(kit, step_bytes, weights);
    for (std::uint32_t row = 0; row < kit.piece(); ++row) stages.add_load(row * kit.pitch);
    run_async(kit, stages, steps, [&] {
      const std::vector<Value<f32>> x = load_factors(kit, factors.view(), kit.piece());
      multiply(kit, take_weights(kit, stages), x, columns, sums);
      next_factors();
    });
  } else {
    repeat(k, steps, [&] {
      add_rows(kit, weights.view(), factors.view(), kit.piece(), columns, sums);
      weights += step_bytes;
      next_factors();
    });
  }
  if_tail(kit, segment, [&](std::uint32_t rows) {
    add_rows(kit, weights.view(), factors.view(), rows, columns, sums);
  });
}

Value<u32> first_output(Kit& kit, const Segment& segment) {
  const Number strip = times(kit.k, segment.strip, kit.plan.strip_outputs());
  return value(kit.k, add(kit.k, strip, *kit.out));
}

// Emits `body` for lanes that have columns, with their number: all of a load, or the remaining
// columns of the last lane of a row.
void for_columns(Kit& kit, const Segment& segment, const std::function<void(std::uint32_t)>& body) {
  KernelBuilder& k = kit.k;
  const std::uint32_t n = kit.problem().n;
  const std::uint32_t full = n - n % kit.v;
  if (n % kit.plan.strip_outputs() == 0) {
    body(kit.v);
    return;
  }
  const Value<u32> column = first_output(kit, segment);
  if (full != 0) k.if_(column < full, [&] { body(kit.v); });
  if (full != n) k.if_(column == full, [&] { body(n % kit.v); });
}

// Full steps from the ring for lanes with full loads. The other lanes read memory, as do all lanes
// for the rest at the end of k.
void add_bulk(Kit& kit, const Segment& segment, Sums& sums) {
  KernelBuilder& k = kit.k;
  const Place begin = place_of(kit, segment);
  const std::uint64_t factor_bytes =
      std::uint64_t{kit.plan.step_elements()} * bytes(kit.problem().x);
  const std::uint32_t row_bytes = kit.plan.strip_outputs() * bytes(kit.problem().weights);
  auto factors = k.var(begin.factors);
  std::vector<Value<f32>> x;
  const auto load_x = [&] { x = load_factors(kit, factors.view(), kit.piece()); };
  const auto add_step = [&] {
    for_columns(kit, segment, [&](std::uint32_t columns) {
      if (columns != kit.v) return;
      std::vector<Floats> rows;
      for (std::uint32_t row = 0; row < kit.piece(); ++row) {
        rows.push_back(kit.bulk->load(std::uint64_t{row} * row_bytes));
      }
      multiply(kit, rows, x, columns, sums);
    });
    factors += factor_bytes;
  };
  if (kit.bulk != nullptr) kit.bulk->run(segment, load_x, add_step);
  const Number steps = BulkRing::steps_of(kit, segment);
  for_columns(kit, segment, [&](std::uint32_t columns) {
    if (columns != kit.v) {
      add_columns(kit, segment, full_steps(kit, segment), columns, sums);
      return;
    }
    if_rest(kit, segment, [&](std::uint32_t rows) {
      const Ptr<b8> weights = moved(k, begin.weights, steps, kit.plan.step_elements() * kit.pitch);
      add_rows(kit, weights, factors.view(), rows, columns, sums);
    });
  });
}

}  // namespace

void place_t(Kit& kit) {
  KernelBuilder& k = kit.k;
  const std::uint32_t side = 32 * kit.plan.warps_out;
  kit.across.emplace(*kit.thread);
  if (kit.plan.warps_k > 1) {
    kit.warp_k.emplace(quotient(k, *kit.thread, kit.plan.threads(), side));
    kit.across->rebind(remainder(k, *kit.thread, *kit.warp_k, side));
  }
  kit.out.emplace(kit.v == 1 ? *kit.across : k.mul_lo(*kit.across, kit.v));
  kit.weights.emplace(moved(k, *kit.a, *kit.across, kit.plan.load_bytes));
  kit.factors.emplace(*kit.x);
  if (kit.warp_k) {
    kit.weights->rebind(moved(k, *kit.weights, *kit.warp_k, kit.piece() * kit.pitch));
    kit.factors->rebind(
        moved(k, *kit.factors, *kit.warp_k, std::uint64_t{kit.piece()} * bytes(kit.problem().x)));
  }
}

void accumulate_t(Kit& kit, const Segment& segment, Sums& sums) {
  if (kit.problem().k == 0) return;
  if (kit.plan.path == GemvPath::Bulk) {
    add_bulk(kit, segment, sums);
    return;
  }
  const Number steps = full_steps(kit, segment);
  for_columns(kit, segment,
              [&](std::uint32_t columns) { add_columns(kit, segment, steps, columns, sums); });
}

void request_t(Kit& kit, const Segment& segment) {
  if (kit.problem().k == 0) return;
  const Number steps = full_steps(kit, segment);
  if_any(kit.k, steps, [&] {
    for_columns(kit, segment, [&](std::uint32_t) {
      const Ptr<b8> weights = place_of(kit, segment).weights;
      for (std::uint32_t row = 0; row < kit.piece(); ++row) {
        prefetch(kit.k, weights + row * kit.pitch);
      }
    });
  });
}

}  // namespace ptxgen::inline v0::gemv
