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

/// One buffer of a launch: the caller's memory and the size that the shape needs.
struct BufferArgument {
  std::string_view name;  ///< parameter name of the launcher's member: "y"
  std::uint64_t address = 0;
  std::uint64_t holds = 0;    ///< elements
  std::uint64_t needs = 0;    ///< elements; 0: not accessed
  std::uint32_t element = 0;  ///< bytes of an element, and its alignment

  template <class T>
  [[nodiscard]] static BufferArgument of(std::string_view name, const DeviceSpan<T>& span,
                                         std::uint64_t needs) noexcept {
    return {name, span.address.value, span.count, needs, sizeof(detail::Host<T>)};
  }
  [[nodiscard]] constexpr std::uint64_t end() const noexcept { return address + needs * element; }
};

/// Whether the buffer is not null, large enough, aligned, and within the address space.
[[nodiscard]] constexpr bool usable(const BufferArgument& buffer) noexcept {
  const std::uint64_t max_elements =
      (std::numeric_limits<std::uint64_t>::max() - buffer.address) / buffer.element;
  return buffer.needs == 0 ||
         (buffer.address != 0 && buffer.holds >= buffer.needs && buffer.needs <= max_elements &&
          buffer.address % buffer.element == 0);
}

/// Allowed overlap of an output with an input. Both are `usable`.
enum class Overlap : std::uint8_t {
  None,  ///< disjoint; otherwise there is a race
  Same,  ///< disjoint or identical: each element is read before it is written
};
[[nodiscard]] constexpr bool overlap_is_allowed(const BufferArgument& output,
                                                const BufferArgument& input,
                                                Overlap allowed) noexcept {
  const bool apart = output.needs == 0 || input.needs == 0 || output.end() <= input.address ||
                     input.end() <= output.address;
  return apart || (allowed == Overlap::Same && output.address == input.address);
}

/// Throws the `Error` (Stage::Launch) for the first invalid argument: "null-pointer",
/// "buffer-size", "misaligned", "aliasing" of the first buffer, the output, with another. `shape`
/// is text: "k = 5, n = 7". Always throws.
[[noreturn]] void refuse_arguments(std::string_view kernel, const std::string& shape,
                                   std::span<const BufferArgument> buffers, Overlap allowed);

/// Checks all buffers; returns if they are valid. `shape()` makes the shape's text for a message.
/// Buffers are passed by value so that they can stay in registers.
template <class Shape, class... Input>
void check_buffers(std::string_view kernel, Overlap allowed, const Shape& shape,
                   BufferArgument output, Input... inputs) {
  const bool good = usable(output) && (usable(inputs) && ...) &&
                    (overlap_is_allowed(output, inputs, allowed) && ...);
  if (!good) [[unlikely]] {
    const BufferArgument buffers[] = {output, inputs...};
    refuse_arguments(kernel, shape(), buffers, allowed);
  }
}

/// Checks the parameter block of a user-defined kernel: its size ("arguments") and the alignment of
/// its pointers ("misaligned"). Null pointers are allowed.
void check_block(std::string_view kernel, const Signature& signature,
                 std::span<const std::byte> arguments);

}  // namespace ptxgen::inline v0
