// tests/tile/kernels/gemm.hpp - a matrix product by tiles and by hand
#pragma once

#include "ptxgen/builder.hpp"
#include "ptxgen/builder/tile.hpp"

namespace ptxgen::test {

/// C[m x n] = A[m x k] B[k x n]; `known` of all sizes and pitches, `alignment` of all pointers.
struct GemmTiles {
  Known known{};
  std::uint64_t alignment = 4;

  void operator()(KernelBuilder& k, Ptr<f32> c, Ptr<f32> a, Ptr<f32> b, Value<u32> m, Value<u32> n,
                  Value<u32> depth, Value<u32> a_pitch, Value<u32> b_pitch,
                  Value<u32> c_pitch) const {
    const auto view = [&](Ptr<f32> p, Value<u32> rows, Value<u32> columns, Value<u32> pitch) {
      return TensorView<f32>(p, {{rows, known}, {columns, known}}, {{pitch, known}, 1})
          .aligned(alignment);
    };
    TileGroup block = TileGroup::block(k, 256);
    const Value<u32> p = k.ctaid_y();
    const Value<u32> q = k.ctaid_x();
    TileProduct<f32> product(block, {64, 64, 16}, {4, 4});
    TilePart<f32> as(block, view(a, m, depth, a_pitch).tiles({64, 16}, Padding::Zero), {p, 0},
                     {.along = 1});
    TilePart<f32> bs(block, view(b, depth, n, b_pitch).tiles({16, 64}, Padding::Zero), {0, q},
                     {.along = 0});
    const SharedTile<f32> a_tile(k, {64, 16}, {as.use(), product.use_a()});
    const SharedTile<f32> b_tile(k, {16, 64}, {bs.use(), product.use_b()});
    as.bind(a_tile);
    bs.bind(b_tile);
    product.bind(a_tile, b_tile);
    for_each_staged(
        block, depth, 16, [&] { product.accumulate(); }, as, bs);
    store_tile(block, view(c, m, n, c_pitch).tiles({64, 64}), {p, q}, product.sums(),
               {.each = {4, 4}});
  }
};

/// For sizes and pitches that are multiples of 4, pointers aligned to 16 bytes.
inline void gemm_twin(KernelBuilder& k, Ptr<f32> c, Ptr<f32> a, Ptr<f32> b, Value<u32> m,
                      Value<u32> n, Value<u32> depth, Value<u32> a_pitch, Value<u32> b_pitch,
                      Value<u32> c_pitch) {
  constexpr std::uint32_t kAPitch = 20;
  constexpr std::uint32_t kBPitch = 64;
  const auto load4 = [&](Ptr<f32> from, const Pred& inside) {
    std::array<Value<f32>, 4> v =
        generate<4>([&](unsigned) { return k.mov(k.constant<f32>(0.0f)); });
    k.guarded(inside, [&] {
      k.emit(ptx::Op::ld, {ptx::Modifier::global, ptx::Modifier::v4, ptx::Modifier::type_f32},
             {Vec{v[0], v[1], v[2], v[3]}, from});
    });
    return v;
  };
  const Value<u32> thread = k.tid_x();
  const Value<u32> p = k.ctaid_y();
  const Value<u32> q = k.ctaid_x();
  const SharedArray<f32> a_tile = k.shared<f32>(64 * kAPitch);
  const SharedArray<f32> b_tile = k.shared<f32>(16 * kBPitch);
  std::vector<Var<f32>> sums;
  for (int i = 0; i < 16; ++i) sums.push_back(k.var<f32>(0.0f));
  // A: a row of 4 vectors by 4 threads. B: a row of 16 vectors by 16 threads.
  const Value<u32> a_vector = k.and_(thread, 3u);
  const Value<u32> a_in_row = k.shl(a_vector, 2u);
  const Value<u32> a_row = k.shr(thread, 2u);
  const Value<u32> a_top = k.mad_lo(p, 64u, a_row);
  const Value<u64> a_skipped = k.mul_wide(a_top, a_pitch);
  auto a_from = k.var(a + a_in_row + a_skipped);
  const Pred a_inside = a_top < m;
  const Value<u32> a_slot = k.mad_lo(a_row, kAPitch, a_in_row);
  const Ptr<f32, Shared> a_to = a_tile + a_slot;
  const Value<u32> vector = k.and_(thread, 15u);
  const Value<u32> b_in_row = k.shl(vector, 2u);
  const Value<u32> row = k.shr(thread, 4u);
  const Value<u32> b_left = k.mad_lo(q, 64u, b_in_row);
  const Value<u64> b_skipped = k.mul_wide(row, b_pitch);
  auto b_from = k.var(b + b_left + b_skipped);
  const Value<u64> b_step = k.mul_wide(b_pitch, 16u);
  const Pred b_inside = b_left < n;
  const Value<u32> b_slot = k.mad_lo(row, kBPitch, b_in_row);
  const Ptr<f32, Shared> b_to = b_tile + b_slot;
  const Value<u32> first_row = k.shl(row, 2u);
  const Ptr<f32, Shared> a_read = a_tile + k.mul_lo(first_row, kAPitch);
  const Ptr<f32, Shared> b_read = b_tile + b_in_row;
  k.for_(0u, depth, 16u, [&](Value<u32> d0) {
    const Value<u32> a_column = d0 + a_in_row;
    const Pred a_here = k.setp(Comparison::lt, ptx::Modifier::and_, a_column, depth, a_inside);
    const auto a_values = load4(a_from.view(), a_here);
    k.st(a_to, a_values);
    const Value<u32> b_row = d0 + row;
    const Pred b_here = k.setp(Comparison::lt, ptx::Modifier::and_, b_row, depth, b_inside);
    const auto b_values = load4(b_from.view(), b_here);
    k.st(b_to, b_values);
    a_from += 16;
    b_from += b_step;
    k.bar_sync();
    for (std::uint32_t d = 0; d < 16; ++d) {
      const auto column = generate<4>([&](unsigned i) { return k.ld(a_read + (i * kAPitch + d)); });
      const auto across = k.ld<4>(b_read + d * kBPitch);
      for (std::uint32_t i = 0; i < 16; ++i) k.fma_inplace(sums[i], column[i / 4], across[i % 4]);
    }
    k.bar_sync();
  });
  const Value<u32> c_row = k.mad_lo(p, 64u, first_row);
  const Value<u64> c_skipped = k.mul_wide(c_row, c_pitch);
  auto c_to = k.var(c + b_left + c_skipped);
  for (std::uint32_t i = 0; i < 4; ++i) {
    const Value<u32> r = c_row + i;
    const Pred inside = k.setp(Comparison::lt, ptx::Modifier::and_, r, m, b_inside);
    k.guarded(inside, [&] {
      k.emit(ptx::Op::st, {ptx::Modifier::global, ptx::Modifier::v4, ptx::Modifier::type_f32},
             {c_to, Vec{sums[4 * i], sums[4 * i + 1], sums[4 * i + 2], sums[4 * i + 3]}});
    });
    if (i != 3) c_to += c_pitch;
  }
}

}  // namespace ptxgen::test
