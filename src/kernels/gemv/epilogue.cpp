// src/kernels/gemv/epilogue.cpp - from sums to outputs
#include <algorithm>
#include <bit>

#include "kernels/gemv/emit.hpp"

namespace ptxgen::inline v0::gemv {

namespace {

// The first `count` outputs of a piece: all loads, then the arithmetic, then the stores.
void store_piece(Kit& kit, const Value<u32>& out, const Piece& piece, std::uint32_t count,
                 Sums& sums) {
  KernelBuilder& k = kit.k;
  const GemvProblem& problem = kit.problem();
  const std::uint32_t element = bytes(problem.y);
  // Pieces begin at multiples of their size.
  const std::uint32_t alignment = std::min(problem.y_alignment, piece.count * element);
  const Ptr<b8> y = moved(k, *kit.y, out, element);
  const auto read = [&](const Ptr<b8>& at) {
    return expand(k, load_run(k, at, problem.y, count, alignment), count);
  };
  std::vector<Value<f32>> old, bias, residual;
  if (problem.scaled) old = read(y);
  if (problem.bias) bias = read(moved(k, *kit.bias, out, element));
  if (problem.residual) residual = read(moved(k, *kit.residual, out, element));
  std::vector<Value<f32>> results;
  for (std::uint32_t i = 0; i < count; ++i) {
    const Var<f32>& sum = sums[piece.begin + i];
    Value<f32> t(sum.core(), sum.reg());
    if (problem.scaled) {
      t.rebind(*kit.alpha * t);
      t.rebind(k.fma(*kit.beta, old[i], t));
    }
    if (problem.bias) t.rebind(t + bias[i]);
    if (problem.residual) t.rebind(t + residual[i]);
    results.push_back(t);
  }
  const std::uint32_t widest = std::min(alignment, 16u) / element;
  for (std::uint32_t i = 0; i < count;) {
    const std::uint32_t take = std::min(widest, std::bit_floor(count - i));
    const std::vector<Value<f32>> part(results.begin() + i, results.begin() + i + take);
    store_floats(k, y + i * element, problem.y, part);
    i += take;
  }
}

}  // namespace

void store_outputs(Kit& kit, const Segment& segment, Outputs& outputs) {
  KernelBuilder& k = kit.k;
  const std::uint32_t n = kit.problem().n;
  const auto store = [&] {
    const Number strip = times(k, segment.strip, kit.plan.strip_outputs());
    for (const Piece& piece : outputs.pieces) {
      const Value<u32> out = value(k, add(k, strip, piece.out));
      const std::uint32_t some = n % piece.count;
      if (n % kit.plan.strip_outputs() == 0) {
        store_piece(kit, out, piece, piece.count, outputs.sums);
        continue;
      }
      if (n != some) {
        k.if_(out < n - some, [&] { store_piece(kit, out, piece, piece.count, outputs.sums); });
      }
      if (some != 0) {
        k.if_(out == n - some, [&] { store_piece(kit, out, piece, some, outputs.sums); });
      }
    }
  };
  if (outputs.owner) {
    k.if_(*outputs.owner, store);
  } else {
    store();
  }
}

}  // namespace ptxgen::inline v0::gemv
