// src/kernels/host/normalization.cpp - norms and softmax on the host
#include <cmath>

#include "kernels/host/rows.hpp"
#include "ptxgen/kernels/normalization/fused_residual_rmsnorm.hpp"
#include "ptxgen/kernels/normalization/layernorm.hpp"
#include "ptxgen/kernels/normalization/per_head_rmsnorm.hpp"
#include "ptxgen/kernels/normalization/rmsnorm.hpp"
#include "ptxgen/kernels/normalization/softmax.hpp"

namespace ptxgen::inline v0 {

namespace {

// Rows of a matrix, their results, and f32 for one row.
struct Rows {
  HostArray x, y;
  std::uint64_t rows;
  std::size_t columns;
};

/// `work(x, y)` for each row in f32; y is then rounded to its type. y may be x, also as arrays.
template <class F>
void for_rows(const HostRun& run, const Rows& all, const F& work) {
  const HostVectors& vectors = *run.vectors();
  rows_on_host(run, all.rows, 2 * all.columns * bytes(all.x.type), all.columns,
               [&](std::uint64_t row, float* space) {
                 const std::uint64_t first = row * all.columns;
                 const float* const x = all.x.read(vectors, first, all.columns, space);
                 float* const y = all.y.type == ElementType::f32 ? all.y.floats(first) : space;
                 work(x, y);
                 all.y.write(vectors, first, all.columns, y);
               });
}

// 1 / sqrt(mean square + eps)
float root_of(const HostVectors& vectors, const float* x, std::size_t columns, float eps) {
  const double squares = vectors.squares(x, 0, columns);
  return static_cast<float>(1 / std::sqrt(squares / static_cast<double>(columns) + double{eps}));
}

void rms_norm(const HostRun& run, const Rows& rows, const float* weight, float eps) {
  const HostVectors& vectors = *run.vectors();
  for_rows(run, rows, [&](const float* x, float* y) {
    vectors.scale(x, root_of(vectors, x, rows.columns, eps), weight, rows.columns, y);
  });
}

}  // namespace

void Describe<RmsNorm>::host(const K& k, const O& o, const HostRun& run) {
  rms_norm(run, {{run, k.type, o.x}, {run, k.type, o.y}, k.rows, k.columns},
           run.at<float>(o.weight), o.eps);
}

void Describe<PerHeadRmsNorm>::host(const K& k, const O& o, const HostRun& run) {
  rms_norm(run,
           {{run, k.type, o.x}, {run, k.type, o.y}, std::uint64_t{k.rows} * k.heads, k.head_size},
           run.at<float>(o.weight), o.eps);
}

void Describe<FusedResidualRmsNorm>::host(const K& k, const O& o, const HostRun& run) {
  const HostVectors& vectors = *run.vectors();
  const HostArray x(run, k.type, o.x);
  const HostArray residual(run, k.type, o.residual);
  const HostArray sum(run, k.type, o.sum);
  const HostArray y(run, k.type, o.y);
  const float* const weight = run.at<float>(o.weight);
  const std::size_t columns = k.columns;
  rows_on_host(run, k.rows, 4 * columns * bytes(k.type), 2 * columns,
               [&](std::uint64_t row, float* space) {
                 float* const s = space;
                 float* const other = space + columns;
                 const std::uint64_t first = row * columns;
                 vectors.add(x.read(vectors, first, columns, s),
                             residual.read(vectors, first, columns, other), columns, s);
                 if (k.type != ElementType::f32) {
                   // Rounded to the type before the norm.
                   vectors.from_f32(k.type, s, columns, other);
                   vectors.to_f32(k.type, other, columns, s);
                 }
                 if (k.write_sum) sum.write(vectors, first, columns, s);
                 vectors.scale(s, root_of(vectors, s, columns, o.eps), weight, columns, s);
                 y.write(vectors, first, columns, s);
               });
}

void Describe<LayerNorm>::host(const K& k, const O& o, const HostRun& run) {
  const HostVectors& vectors = *run.vectors();
  const float* const weight = k.affine ? run.at<float>(o.weight) : nullptr;
  const float* const bias = k.affine ? run.at<float>(o.bias) : nullptr;
  const double columns = k.columns;
  for_rows(run, {{run, k.type, o.x}, {run, k.type, o.y}, k.rows, k.columns},
           [&](const float* x, float* y) {
             const double mean = vectors.sum(x, k.columns) / columns;
             const double variance = vectors.squares(x, mean, k.columns) / columns;
             vectors.normalise(x, mean, 1 / std::sqrt(variance + double{o.eps}), weight, bias,
                               k.columns, y);
           });
}

void Describe<Softmax>::host(const K& k, const O& o, const HostRun& run) {
  const HostVectors& vectors = *run.vectors();
  const float factor = k.scaled ? 1 / o.temperature : 1;
  for_rows(run, {{run, k.type, o.x}, {run, k.type, o.y}, k.rows, k.columns},
           [&](const float* x, float* y) {
             const float largest = vectors.largest(x, k.columns);
             const double sum = vectors.exponentials(x, largest, factor, k.columns, y);
             const bool masked = k.masked_rows && largest == -INFINITY;
             if (masked) {
               std::fill_n(y, k.columns, 0.0f);
             } else {
               vectors.scale(y, static_cast<float>(1 / sum), nullptr, k.columns, y);
             }
           });
}

}  // namespace ptxgen::inline v0
