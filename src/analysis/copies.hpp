// src/analysis/copies.hpp - operands of asynchronous copies
#pragma once

#include <cstdint>
#include <optional>

#include "ptxgen/analysis/affine.hpp"

namespace ptxgen::inline v0::analysis {

/// The operands of an asynchronous copy between global and shared memory.
struct Copy {
  /// A copy engine copies `size` bytes for each thread (`cp.async.bulk`); else a lane copies a
  /// constant number of them itself (`cp.async`).
  bool bulk = false;
  bool combines = false;  ///< reads the target too: a reduction
  const ptx::Operand* to = nullptr;
  const ptx::Operand* from = nullptr;
  ptx::Space to_space = ptx::Space::Generic;
  ptx::Space from_space = ptx::Space::Generic;
  const ptx::Operand* size = nullptr;
  /// Of a lane: how many bytes it reads (src-size), or whether it reads none (ignore-src).
  const ptx::Operand* source = nullptr;
  bool ignores = false;  ///< `source` is ignore-src

  /// Of a lane: the bytes written.
  [[nodiscard]] std::uint32_t lane_bytes() const noexcept {
    return static_cast<std::uint32_t>(size->value);
  }
  /// Of a lane: the bytes read where `source` has this value. A src-size above the size is not
  /// defined, and taken for the size.
  [[nodiscard]] std::uint32_t bytes_read(std::uint64_t value) const noexcept;
};

/// Nothing for other statements, for copies that lack operands, and where some bytes of a bulk copy
/// may be masked. Refers to operands of the function.
[[nodiscard]] std::optional<Copy> copy_of(const ptx::Function& function,
                                          const ptx::Instruction& statement);

/// The value of `source`; constant `size` without one.
[[nodiscard]] AffineForm source_form(const Affine& affine, std::uint32_t statement,
                                     const Copy& copy);

/// A form's value, if it is a constant whatever wraps around.
[[nodiscard]] std::optional<std::uint64_t> constant_of(const AffineForm& form) noexcept;

}  // namespace ptxgen::inline v0::analysis
