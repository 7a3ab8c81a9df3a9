// src/check/parity/sources.hpp - parameters and block indices that values depend on
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/facts.hpp"

namespace ptxgen::inline v0::gates {

/// A set of sources: bit i is parameter i of the kernel.
using SourceSet = std::uint64_t;
inline constexpr std::uint32_t kMaxParameters = 58;
inline constexpr SourceSet kSharedAddress = SourceSet{1} << 60u;
/// %ctaid with component 0 (x) to 2 (z).
[[nodiscard]] constexpr SourceSet block_index(unsigned component) noexcept {
  return SourceSet{1} << (61u + component);
}
[[nodiscard]] constexpr SourceSet parameter_source(std::uint32_t parameter) noexcept {
  return parameter < kMaxParameters ? SourceSet{1} << parameter : 0;
}

/// Follows parameters and block indices through arithmetic, not through memory. Linear in the
/// function. Refers to `facts`.
class Sources {
 public:
  explicit Sources(analysis::Facts& facts);

  /// Of an operand that the statement reads.
  [[nodiscard]] SourceSet of(std::uint32_t statement, const ptx::Operand& operand) const;
  [[nodiscard]] SourceSet of_guard(std::uint32_t statement) const;
  /// Of an address, by its affine form: what cancels out does not count.
  [[nodiscard]] SourceSet of_address(const analysis::AffineForm& form) const;
  /// Of a version.
  [[nodiscard]] SourceSet of_version(std::uint32_t version) const noexcept {
    return version == ptx::kNone ? 0 : sets_[version];
  }

 private:
  bool refresh(std::uint32_t version);
  [[nodiscard]] SourceSet computed(std::uint32_t statement) const;
  [[nodiscard]] SourceSet of_plain(std::uint32_t statement, const ptx::Operand& operand) const;
  [[nodiscard]] SourceSet of_symbol(std::uint32_t symbol) const;

  analysis::Facts& facts_;
  const analysis::Versions& versions_;
  std::vector<SourceSet> sets_;  // of each version
};

}  // namespace ptxgen::inline v0::gates
