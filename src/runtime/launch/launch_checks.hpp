// src/runtime/launch/launch_checks.hpp - arguments of a launch against signature and shape
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>

#include "ptxgen/builder/kernel.hpp"
#include "ptxgen/runtime/device/buffer.hpp"

namespace ptxgen::inline v0 {

/// One buffer of a launch: what the caller passes and what the shape needs.
struct BufferArgument {
  std::string_view name;  ///< as the launcher's member calls it: "y"
  std::uint64_t address = 0;
  std::uint64_t holds = 0;    ///< elements
  std::uint64_t needs = 0;    ///< elements; 0: the kernel does not touch it
  std::uint32_t element = 0;  ///< bytes of one; the alignment too

  template <class T>
  [[nodiscard]] static BufferArgument of(std::string_view name, const DeviceSpan<T>& span,
                                         std::uint64_t needs) noexcept {
    return {name, span.address.value, span.count, needs, sizeof(detail::Host<T>)};
  }
  [[nodiscard]] constexpr std::uint64_t end() const noexcept { return address + needs * element; }
};

/// Whether the buffer is there, large enough, aligned, and ends before the end of addresses.
[[nodiscard]] constexpr bool usable(const BufferArgument& buffer) noexcept {
  const std::uint64_t room =
      (std::numeric_limits<std::uint64_t>::max() - buffer.address) / buffer.element;
  return buffer.needs == 0 || (buffer.address != 0 && buffer.holds >= buffer.needs &&
                               buffer.needs <= room && buffer.address % buffer.element == 0);
}

/// How an output may lie to an input. Both have been found `usable`.
enum class Overlap : std::uint8_t {
  None,  ///< apart, or there is a race
  Same,  ///< apart, or starting at the same place: each element is read before it is written
};
[[nodiscard]] constexpr bool lies_well(const BufferArgument& output, const BufferArgument& input,
                                       Overlap allowed) noexcept {
  const bool apart = output.needs == 0 || input.needs == 0 || output.end() <= input.address ||
                     input.end() <= output.address;
  return apart || (allowed == Overlap::Same && output.address == input.address);
}

/// Throws the `Error` (Stage::Launch) for the first thing that is wrong: "null-pointer",
/// "buffer-size", "misaligned", "aliasing" of the first buffer, the output, with another. `shape`
/// in words, "k = 5, n = 7". To be called when something is wrong; throws in any case.
[[noreturn]] void refuse_arguments(std::string_view kernel, const std::string& shape,
                                   std::span<const BufferArgument> buffers, Overlap allowed);

/// All of the above: returns if everything fits. `shape()` makes the shape's words where something
/// does not. Buffers by value, so that nothing of them is in memory unless a message needs it.
template <class Shape, class... Input>
void check_buffers(std::string_view kernel, Overlap allowed, const Shape& shape,
                   BufferArgument output, Input... inputs) {
  const bool good =
      usable(output) && (usable(inputs) && ...) && (lies_well(output, inputs, allowed) && ...);
  if (!good) [[unlikely]] {
    const BufferArgument buffers[] = {output, inputs...};
    refuse_arguments(kernel, shape(), buffers, allowed);
  }
}

/// The parameter block of a kernel of somebody's own: its size ("arguments") and the alignment of
/// the pointers in it ("misaligned"). A null pointer is the kernel's affair.
void check_block(std::string_view kernel, const Signature& signature,
                 std::span<const std::byte> arguments);

}  // namespace ptxgen::inline v0
