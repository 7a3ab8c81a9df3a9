// src/cli/output/array_file.hpp - arrays of numbers as NumPy files
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace ptxgen::cli {

/// Writes f32 elements in C order to a .npy file. Throws `Error` (stage io).
void write_array(const std::string& path, std::span<const float> values,
                 std::span<const std::uint64_t> shape);

}  // namespace ptxgen::cli
