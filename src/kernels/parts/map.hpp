// src/kernels/parts/map.hpp - one output for each element of the inputs
#pragma once

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "ptxgen/builder.hpp"
#include "ptxgen/kernels/element_type.hpp"
#include "ptxgen/kernels/kernel.hpp"
#include "ptxgen/ptx/target.hpp"

namespace ptxgen::inline v0 {

/// Computes one f32 from one element of each input, as f32.
using MapElement = std::function<Value<f32>(std::span<const Value<f32>>)>;

/// The kernel `name(inputs..., out, n)` with `out[i] = compute(input0[i], ...)` for i in [0, n),
/// all of `type`: f32, f16 or bf16 (otherwise throws "bad-parameter"). 16-bit elements are computed
/// as f32 and rounded once to nearest even. Access as `for_each_group`.
[[nodiscard]] BuiltKernel map_kernel(std::string_view name, const ptx::Target& target,
                                     ElementType type, std::span<const std::string_view> inputs,
                                     const MapElement& compute);
/// The same for each row of [row][n]: the grid's y is the row, which moves every pointer.
[[nodiscard]] BuiltKernel batched_map_kernel(std::string_view name, const ptx::Target& target,
                                             ElementType type,
                                             std::span<const std::string_view> inputs,
                                             const MapElement& compute);
/// Its geometry: a block of 256 threads for each 256 elements of a row. n = 0 or rows = 0 throws
/// `Error` (Stage::Launch, "empty-grid").
[[nodiscard]] LaunchGeometry batched_map_geometry(std::string_view name, std::uint32_t n,
                                                  std::uint32_t rows);
/// The geometry of `map_kernel`: blocks of 256 threads, 16 bytes a thread. n = 0 throws `Error`
/// (Stage::Launch, "empty-grid").
[[nodiscard]] LaunchGeometry map_geometry(std::string_view name, std::uint32_t n, ElementType type);
/// Reads each input once, writes the output once.
[[nodiscard]] KernelCost map_cost(std::uint64_t n, ElementType type, unsigned inputs,
                                  unsigned flops) noexcept;

}  // namespace ptxgen::inline v0
