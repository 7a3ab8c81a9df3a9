// src/support/npy.hpp - NumPy's .npy files
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ptxgen::inline v0 {

/// An array as a .npy file holds it: C order, little endian.
/// Format: numpy.org/doc/stable/reference/generated/numpy.lib.format.html, versions 1.0, 2.0, 3.0.
struct NpyArray {
  std::string type;  ///< "<f4", "|u1": byte order, kind, bytes of an element
  std::vector<std::uint64_t> shape;
  std::uint32_t element_bytes = 0;
  std::string data;
};

/// Reads the content of a .npy file. Throws `Error` (stage io, "npy") with `file` for what is no
/// such file, or holds big-endian, Fortran-ordered, structured or Python data, or too few or too
/// many bytes.
[[nodiscard]] NpyArray parse_npy(std::string content, const std::string& file);

/// What comes before the elements in a file of version 1.0.
[[nodiscard]] std::string npy_header(std::string_view type, std::span<const std::uint64_t> shape);

}  // namespace ptxgen::inline v0
