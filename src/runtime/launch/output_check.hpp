// src/runtime/launch/output_check.hpp - outputs of a kernel against their reference
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "ptxgen/kernels/description.hpp"
#include "ptxgen/runtime/launch/verify.hpp"

namespace ptxgen::inline v0 {

/// Compares outputs with their reference and adds what it finds to `result`. Refers to its
/// arguments.
class OutputCheck {
 public:
  OutputCheck(Verification& result, const ErrorBound& bound) : result_(result), bound_(bound) {}

  /// `before`: what the output held; a block that keeps its values keeps its bits.
  void output(ElementType type, std::span<const std::byte> elements,
              std::span<const std::byte> before, const HostOperands::Operand& reference);
  /// Sets the NMSE of all outputs.
  void finish() { result_.nmse = squares_ > 0 ? errors_ / squares_ : errors_; }

 private:
  void blocks(ElementType type, std::span<const std::byte> got, std::span<const std::byte> before,
              const HostOperands::Operand& reference);
  void values_of_blocks(std::span<const std::byte> got, std::span<const std::byte> before,
                        const HostOperands::Operand& reference);
  void one(ElementType type, std::string_view name, std::size_t i, std::span<const std::byte> bits,
           double got, double expected, double magnitude);
  void value(std::string_view name, std::size_t i, double got, double expected, double within);
  void add(double error, double expected);

  Verification& result_;
  const ErrorBound& bound_;
  double errors_ = 0;
  double squares_ = 0;
};

}  // namespace ptxgen::inline v0
