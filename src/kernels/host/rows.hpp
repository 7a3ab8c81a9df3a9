// src/kernels/host/rows.hpp - elements of any float type as f32, in pieces
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/host/vectors.hpp"
#include "ptxgen/kernels/host.hpp"

namespace ptxgen::inline v0 {

/// Elements of an operand of f32, f16 or bf16. Null: the operand is not there.
struct HostArray {
  ElementType type = ElementType::f32;
  std::byte* memory = nullptr;

  HostArray(const HostRun& run, ElementType of, const DeviceRange& range)
      : type(of), memory(run.at<std::byte>(range)) {}
  [[nodiscard]] std::byte* at(std::uint64_t i) const { return memory + i * bytes(type); }
  /// The elements in place, if they are f32.
  [[nodiscard]] float* floats(std::uint64_t i) const { return reinterpret_cast<float*>(at(i)); }
  /// `count` elements from `i` on: in place if they are f32, else converted to `space`.
  [[nodiscard]] const float* read(const HostVectors& vectors, std::uint64_t i, std::size_t count,
                                  float* space) const {
    if (type == ElementType::f32) return floats(i);
    vectors.to_f32(type, at(i), count, space);
    return space;
  }
  void write(const HostVectors& vectors, std::uint64_t i, std::size_t count,
             const float* from) const {
    vectors.from_f32(type, from, count, at(i));
  }
};

/// Elements that are computed at a time: f32 of three arrays fit any first-level cache.
inline constexpr std::size_t kHostPiece = 1024;

/// `out[i] = work(inputs[i]...)` for i in [0, count): `work(pieces, size, to)` for each piece.
template <std::size_t kInputs, class F>
void map_on_host(const HostRun& run, std::uint64_t count, const HostArray (&inputs)[kInputs],
                 const HostArray& out, const F& work) {
  const HostVectors& vectors = *run.vectors();
  const std::uint64_t item = (kInputs + 1) * bytes(out.type);
  run.for_parts(count, item, kHostPiece, [&](std::uint64_t begin, std::uint64_t end) {
    float space[kInputs][kHostPiece];
    float result[kHostPiece];
    for (std::uint64_t i = begin; i < end; i += kHostPiece) {
      const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(kHostPiece, end - i));
      const float* from[kInputs];
      for (std::size_t k = 0; k < kInputs; ++k)
        from[k] = inputs[k].read(vectors, i, size, space[k]);
      float* const to = out.type == ElementType::f32 ? out.floats(i) : result;
      work(from, size, to);
      out.write(vectors, i, size, to);
    }
  });
}

/// `work(row, space)` for each of `rows` rows; `space` holds `floats` f32.
template <class F>
void rows_on_host(const HostRun& run, std::uint64_t rows, std::uint64_t row_bytes,
                  std::size_t floats, const F& work) {
  run.for_parts(rows, row_bytes, 1, [&](std::uint64_t begin, std::uint64_t end) {
    std::vector<float> space(floats);
    for (std::uint64_t row = begin; row < end; ++row) work(row, space.data());
  });
}

}  // namespace ptxgen::inline v0
