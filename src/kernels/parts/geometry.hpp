// src/kernels/parts/geometry.hpp - launch geometry shared by the kernels
#pragma once

#include <string>

#include "ptxgen/kernels/kernel.hpp"
#include "ptxgen/support/error.hpp"

namespace ptxgen::inline v0 {

/// Of any GPU.
inline constexpr std::uint32_t kMaxBlockThreads = 1024;

/// A grid of ceil(count / per_block) blocks of `threads`. An empty grid cannot be launched.
[[nodiscard]] inline LaunchGeometry one_dimensional(std::string_view kernel, std::uint32_t count,
                                                    std::uint32_t per_block,
                                                    std::uint32_t threads) {
  if (count == 0) {
    Error error(Stage::Launch, "empty-grid",
                "n is 0, which leaves no block to launch; skip the launch for an empty output");
    error.kernel = kernel;
    throw error.refresh();
  }
  return {.grid = {(count - 1) / per_block + 1, 1, 1}, .block = {threads, 1, 1}};
}

}  // namespace ptxgen::inline v0
