// src/kernels/host/gemv.cpp - products of matrices and vectors on the host
//
// Layout R: a row's sum is 32 partial sums (kDotLanes) of fused multiply-adds. Layout T: a column's
// sum is one chain of them, as that of gemv_coalesced. Neither depends on the number of threads.
#include <algorithm>
#include <cmath>

#include "kernels/host/rows.hpp"
#include "ptxgen/kernels/gemv/batched.hpp"
#include "ptxgen/kernels/gemv/coalesced.hpp"
#include "ptxgen/kernels/gemv/group.hpp"
#include "ptxgen/kernels/gemv/kernel.hpp"
#include "ptxgen/kernels/gemv/strided.hpp"
#include "ptxgen/kernels/quantization/blocks.hpp"
#include "ptxgen/kernels/quantization/repacked_rows.hpp"

namespace ptxgen::inline v0 {

namespace {

// Values of a row of blocks that are unpacked at a time: whole blocks, whole rounds of the lanes.
constexpr std::size_t kUnpacked = 2048;
// Columns of layout T at a time: their sums stay in the first-level cache.
constexpr std::size_t kColumns = 4096;
// Rows at a time, of the matrix or of the batched x.
constexpr std::size_t kTogether = 8;

// The vector x in f32.
class FloatVector {
 public:
  FloatVector(const HostRun& run, ElementType type, const DeviceRange& memory,
              std::uint64_t count) {
    const HostVectors& vectors = *run.vectors();
    const std::byte* const from = run.at<std::byte>(memory);
    if (type == ElementType::f32) {
      values_ = reinterpret_cast<const float*>(from);
      return;
    }
    space_.resize(static_cast<std::size_t>(count));
    if (is_block_format(type)) {
      vectors.dequantize(type, from, space_.size(), space_.data());
    } else {
      vectors.to_f32(type, from, space_.size(), space_.data());
    }
    values_ = space_.data();
  }
  [[nodiscard]] const float* data() const noexcept { return values_; }

 private:
  std::vector<float> space_;
  const float* values_ = nullptr;
};

struct Matrix {
  ElementType type;
  const std::byte* memory;
  std::uint64_t pitch;  // elements from row to row
  std::uint64_t k;
  bool repacked = false;

  [[nodiscard]] const std::byte* row(std::uint64_t j) const {
    return memory + bytes(type, j * pitch);
  }
  // A row of blocks as stored; that of repacked rows is in `space`.
  [[nodiscard]] const std::byte* blocks(std::uint64_t j, std::vector<std::byte>& space) const {
    if (!repacked) return row(j);
    const auto size = static_cast<std::size_t>(repacked_bytes(type, k));
    space = unpack_rows(type, k, {memory + j * size, size});
    return space.data();
  }
};

// Sums of the products of one row and `count` vectors, which are k elements apart.
void row_times(const HostVectors& vectors, const Matrix& matrix, std::uint64_t row, const float* x,
               std::size_t count, float* sums) {
  float lanes[kTogether][kDotLanes] = {};
  std::vector<std::byte> space;
  const std::byte* const weights = matrix.blocks(row, space);
  const bool blocks = is_block_format(matrix.type);
  float unpacked[kUnpacked];
  const std::uint64_t step = blocks ? kUnpacked : std::max<std::uint64_t>(1, matrix.k);
  for (std::uint64_t i = 0; i < matrix.k; i += step) {
    const auto size = static_cast<std::size_t>(std::min(step, matrix.k - i));
    const std::byte* const at = weights + bytes(matrix.type, i);
    if (blocks) vectors.dequantize(matrix.type, at, size, unpacked);
    for (std::size_t m = 0; m < count; ++m) {
      vectors.dot(blocks ? ElementType::f32 : matrix.type,
                  blocks ? static_cast<const void*>(unpacked) : at, 0, 1, x + m * matrix.k + i,
                  size, lanes[m]);
    }
  }
  for (std::size_t m = 0; m < count; ++m) sums[m] = sum_of_lanes(lanes[m]);
}

void rows_times(const HostVectors& vectors, const Matrix& matrix, std::uint64_t first,
                std::size_t count, const float* x, float* sums) {
  if (matrix.k == 0) {  // there is no matrix
    std::fill_n(sums, count, 0.0f);
    return;
  }
  if (is_block_format(matrix.type)) {
    for (std::size_t j = 0; j < count; ++j) row_times(vectors, matrix, first + j, x, 1, sums + j);
    return;
  }
  for (std::size_t j = 0; j < count; j += kTogether) {
    const std::size_t some = std::min(kTogether, count - j);
    float lanes[kTogether][kDotLanes] = {};
    vectors.dot(matrix.type, matrix.row(first + j), matrix.pitch, some, x, matrix.k, lanes[0]);
    for (std::size_t r = 0; r < some; ++r) sums[j + r] = sum_of_lanes(lanes[r]);
  }
}

// `work(first, count)` for pieces of n rows, each of `row_bytes`.
template <class F>
void pieces_of(const HostRun& run, std::uint64_t n, std::uint64_t row_bytes, std::uint64_t step,
               std::size_t piece, const F& work) {
  run.for_parts(n, row_bytes, step, [&](std::uint64_t begin, std::uint64_t end) {
    for (std::uint64_t j = begin; j < end; j += piece) {
      work(j, static_cast<std::size_t>(std::min<std::uint64_t>(piece, end - j)));
    }
  });
}

void add_array(const HostVectors& vectors, const HostArray& array, std::uint64_t first,
               std::size_t count, float* sums) {
  float space[kHostPiece];
  for (std::size_t i = 0; i < count; i += kHostPiece) {
    const std::size_t size = std::min(kHostPiece, count - i);
    vectors.add(sums + i, array.read(vectors, first + i, size, space), size, sums + i);
  }
}

// From sums to elements of y.
void finish(const HostRun& run, const GemvProblem& p, const GemvOperands& o, std::uint64_t first,
            std::size_t count, float* sums) {
  const HostVectors& vectors = *run.vectors();
  const HostArray y(run, p.y, o.y);
  if (p.scaled) {
    vectors.scale(sums, o.alpha, nullptr, count, sums);
    float space[kHostPiece];
    for (std::size_t i = 0; i < count; i += kHostPiece) {
      const std::size_t size = std::min(kHostPiece, count - i);
      vectors.add_scaled(o.beta, y.read(vectors, first + i, size, space), size, sums + i);
    }
  }
  if (p.bias) add_array(vectors, {run, p.y, o.bias}, first, count, sums);
  if (p.residual) add_array(vectors, {run, p.y, o.residual}, first, count, sums);
  y.write(vectors, first, count, sums);
}

void gemv(const GemvProblem& p, const GemvOperands& o, const HostRun& run) {
  const HostVectors& vectors = *run.vectors();
  const FloatVector x(run, p.x, o.x, p.k);
  const Matrix matrix{p.weights, run.at<std::byte>(o.a), p.leading_dimension(), p.k, p.repacked};
  if (p.layout == GemvLayout::R) {
    pieces_of(run, p.n, bytes(p.weights, p.k), 1, kHostPiece,
              [&](std::uint64_t first, std::size_t count) {
                float sums[kHostPiece];
                rows_times(vectors, matrix, first, count, x.data(), sums);
                finish(run, p, o, first, count, sums);
              });
    return;
  }
  // Parts of whole cache lines.
  const std::uint64_t column = std::uint64_t{p.k} * bytes(p.weights);
  pieces_of(run, p.n, column, 64, kColumns, [&](std::uint64_t first, std::size_t count) {
    float sums[kColumns] = {};
    if (p.k == 0) return finish(run, p, o, first, count, sums);  // there is no matrix
    vectors.add_rows(p.weights, matrix.memory + bytes(p.weights, first), matrix.pitch, p.k,
                     x.data(), count, sums);
    finish(run, p, o, first, count, sums);
  });
}

void activate(const HostVectors& vectors, GemvGate gate, std::size_t count, float* sums) {
  if (gate == GemvGate::Gelu || gate == GemvGate::GeluPrecise) {
    vectors.gelu_tanh(sums, count, sums);
  } else {
    vectors.gate(1, sums, count, sums);
  }
}

}  // namespace

void Describe<GemvProblem>::host(const P& problem, const GemvOperands& o, const HostRun& run) {
  gemv(problem, o, run);
}

void Describe<Gemv>::host(const Gemv& kernel, const GemvOperands& o, const HostRun& run) {
  gemv(kernel.plan.problem, o, run);
}

void Describe<GemvCoalesced>::host(const K& k, const O& o, const HostRun& run) {
  gemv({.k = k.k, .n = k.n}, {.y = o.y, .a = o.a, .x = o.x}, run);
}

void Describe<GemvStrided>::host(const K& k, const O& o, const HostRun& run) {
  gemv({.k = k.k, .n = k.n}, {.y = o.y, .a = o.a, .x = o.x}, run);
}

void Describe<GemvGroup>::host(const K& k, const O& o, const HostRun& run) {
  const HostVectors& vectors = *run.vectors();
  const FloatVector x(run, k.x, o.x, k.k);
  struct Part {
    Matrix matrix;
    DeviceRange y, bias;
    std::uint32_t n;
  };
  const auto part = [&](ElementType type, const DeviceRange& w, const DeviceRange& y,
                        const DeviceRange& bias, std::uint32_t n, std::uint32_t i) {
    return Part{{type, run.at<std::byte>(w), k.k, k.k, k.is_repacked(i)}, y, bias, n};
  };
  const Part parts[] = {part(k.w0, o.w0, o.y0, o.bias0, k.n0, 0),
                        part(k.w1, o.w1, o.y1, o.bias1, k.n1, 1),
                        part(k.w2, o.w2, o.y2, o.bias2, k.n2, 2)};
  const auto sums_of = [&](const Part& of, std::uint64_t first, std::size_t count, float* sums) {
    rows_times(vectors, of.matrix, first, count, x.data(), sums);
    if (k.bias) add_array(vectors, {run, k.y, of.bias}, first, count, sums);
  };
  const bool gated = k.gate != GemvGate::None;
  for (std::uint32_t i = gated ? 1 : 0; i < k.matrices(); ++i) {
    // With a gate the second matrix comes with the first, in the place of which it is written.
    const Part& of = parts[i];
    const bool both = gated && i == 1;
    const HostArray y(run, k.y, both ? o.y0 : of.y);
    pieces_of(run, of.n, bytes(of.matrix.type, k.k), 1, kHostPiece,
              [&](std::uint64_t first, std::size_t count) {
                float sums[kHostPiece];
                sums_of(of, first, count, sums);
                if (both) {
                  float gates[kHostPiece];
                  sums_of(parts[0], first, count, gates);
                  activate(vectors, k.gate, count, gates);
                  vectors.multiply(gates, sums, count, sums);
                }
                y.write(vectors, first, count, sums);
              });
  }
}

void Describe<BatchedGemv>::host(const K& k, const O& o, const HostRun& run) {
  const HostVectors& vectors = *run.vectors();
  const FloatVector x(run, k.x, o.x, std::uint64_t{k.k} * o.m_dim);
  const Matrix matrix{k.weights, run.at<std::byte>(o.w), k.k, k.k, k.repacked};
  const HostArray y(run, k.y, o.y);
  run.for_parts(k.n, bytes(k.weights, k.k), 1, [&](std::uint64_t begin, std::uint64_t end) {
    for (std::uint64_t j = begin; j < end; ++j) {
      for (std::uint32_t m = 0; m < o.m_dim; m += kTogether) {
        const std::size_t count = std::min<std::size_t>(kTogether, o.m_dim - m);
        float sums[kTogether];
        row_times(vectors, matrix, j, x.data() + std::uint64_t{m} * k.k, count, sums);
        for (std::size_t r = 0; r < count; ++r) y.write(vectors, (m + r) * k.n + j, 1, sums + r);
      }
    }
  });
}

}  // namespace ptxgen::inline v0
