// tests/emulator/warpgroup_kernels.hpp - kernels of one wgmma on matrices of small integers
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "matrix_runner.hpp"
#include "ptxgen/emulator/emulator.hpp"

namespace ptxgen::test {

/// One wgmma, and the layout of its matrices in shared memory.
struct WarpgroupCase {
  std::string a = "f16";  ///< types
  std::string b = "f16";
  std::string d = "f32";
  unsigned n = 8;
  unsigned swizzle = 0;  ///< 0, 32, 64, 128 bytes
  bool a_in_registers = false;
  bool transpose_a = false;
  bool transpose_b = false;
  bool negate_a = false;
  bool negate_b = false;
  bool accumulate = true;
  bool saturate = false;
  bool bits = false;  ///< matrices hold the bits of elements, not integers

  [[nodiscard]] unsigned element_bytes() const { return bits_of(a) / 8; }
  [[nodiscard]] unsigned k() const { return 32 / element_bytes(); }
  [[nodiscard]] bool integer() const { return d == "s32"; }
  /// 32-bit registers of d in a thread.
  [[nodiscard]] unsigned registers() const { return n / (d == "f16" ? 4 : 2); }
  /// "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16".
  [[nodiscard]] std::string opcode() const;
  [[nodiscard]] std::string text() const;  ///< for INFO
};

/// A matrix in shared memory, from offset 0 on, and the fields of its descriptor.
struct SharedMatrix {
  std::vector<std::uint8_t> bytes;
  std::uint64_t leading = 0;
  std::uint64_t stride = 0;
};

/// The bits of a descriptor.
[[nodiscard]] std::uint64_t descriptor(std::uint64_t start, std::uint64_t leading,
                                       std::uint64_t stride, unsigned swizzle,
                                       unsigned base_offset = 0);

/// Lays out a matrix of rows (along m or n) and k columns, as a copy engine would: rows of k, or,
/// transposed, rows of m or n, one after another, `swizzle` bytes wide.
[[nodiscard]] SharedMatrix lay_out(const Matrix& matrix, const std::string& type, unsigned swizzle,
                                   bool transposed, bool bits = false);

/// Runs d = a b (+ c) on a block of one warpgroup; the findings must be none. b has n rows.
[[nodiscard]] Matrix run_warpgroup(const WarpgroupCase& c, const Matrix& a, const Matrix& b,
                                   const Matrix& c_in, std::uint64_t seed = 0);

}  // namespace ptxgen::test
