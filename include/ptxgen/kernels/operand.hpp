// ptxgen/kernels/operand.hpp - device memory that kernels are launched with
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>

#include "ptxgen/builder/kernel.hpp"
#include "ptxgen/kernels/element_type.hpp"

namespace ptxgen::inline v0 {

/// A view of device memory. T is a PTX element type: f32, f16, u32...
template <class T>
struct DeviceSpan {
  DeviceAddress<T> address;
  std::uint64_t count = 0;  ///< elements

  [[nodiscard]] std::uint64_t bytes() const noexcept { return count * sizeof(detail::Host<T>); }
  /// `count` elements from `first` on. Throws `Error` (Stage::Device, "out-of-bounds").
  [[nodiscard]] DeviceSpan subspan(std::uint64_t first, std::uint64_t count) const;
};

/// A view of device memory whose element type is known at run time, or not at all. Converts from
/// `DeviceSpan` and `Buffer`.
struct DeviceRange {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  ptx::Type type = ptx::Type::none;  ///< of an element; none: raw memory

  DeviceRange() = default;
  constexpr DeviceRange(std::uint64_t at, std::uint64_t size,
                        ptx::Type element = ptx::Type::none) noexcept
      : address(at), bytes(size), type(element) {}
  template <class T>
  constexpr DeviceRange(const DeviceSpan<T>& span) noexcept
      : address(span.address.value), bytes(span.bytes()), type(T::kType) {}
};

namespace detail {
[[noreturn]] void throw_subspan(std::uint64_t first, std::uint64_t count, std::uint64_t has);
}  // namespace detail

template <class T>
DeviceSpan<T> DeviceSpan<T>::subspan(std::uint64_t first, std::uint64_t wanted) const {
  if (first > count || wanted > count - first) detail::throw_subspan(first, wanted, count);
  return {{address.value + first * sizeof(detail::Host<T>)}, wanted};
}

/// What a kernel does with an argument.
enum class ArgumentRole : std::uint8_t {
  Input,      ///< device memory that the kernel reads
  Output,     ///< device memory that it writes, every element
  InOut,      ///< device memory that it reads and writes
  Workspace,  ///< device memory for intermediate results, provided by the launcher
  Scalar,     ///< a number passed at the launch
  Shape,      ///< a parameter of the kernel that its code takes at run time
  Promise,    ///< not passed to the kernel: what the caller promises about the launch
  TensorMap,  ///< a map of an operand for tensor copies, encoded by the launcher
};
/// "input", "output", "in-out", "workspace", "scalar", "shape", "promise", "tensor map"
[[nodiscard]] std::string_view to_string(ArgumentRole role) noexcept;
[[nodiscard]] constexpr bool is_memory(ArgumentRole role) noexcept {
  return role <= ArgumentRole::InOut;
}
[[nodiscard]] constexpr bool is_written(ArgumentRole role) noexcept {
  return role == ArgumentRole::Output || role == ArgumentRole::InOut;
}

/// One operand in device memory at a launch: the caller's memory beside what the shape needs.
struct OperandUse {
  std::string_view name;
  DeviceRange memory;
  ElementType type = ElementType::f32;
  std::uint64_t elements = 0;   ///< values that the shape needs; 0: not accessed
  std::uint32_t alignment = 1;  ///< bytes; at least an element's
  bool present = true;          ///< false: the shape has no such operand
  bool written = false;

  /// Bytes that the shape needs, saturated.
  [[nodiscard]] constexpr std::uint64_t needs() const noexcept {
    const ElementInfo& row = info(type);
    const std::uint64_t blocks =
        row.block_values == 1 ? elements
                              : elements / row.block_values + (elements % row.block_values != 0);
    constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();
    return blocks > kMax / row.block_bytes ? kMax : blocks * row.block_bytes;
  }
};

/// Whether memory of elements `passed` may be used where `wanted` are expected: the same type, raw
/// memory or bytes, or untyped bits of that width on either side.
[[nodiscard]] constexpr bool type_fits(ptx::Type passed, ElementType wanted) noexcept {
  const ptx::Type type = info(wanted).type;
  if (passed == type || passed == ptx::Type::none) return true;
  if (passed == ptx::Type::b8 || passed == ptx::Type::u8) return true;
  if (passed == ptx::Type::b16) return bytes(wanted) == 2;
  if (passed == ptx::Type::b32 || wanted == ElementType::b32) {
    return bytes(wanted) == 4 && (passed == ptx::Type::b32 || passed == ptx::Type::f32 ||
                                  passed == ptx::Type::u32 || passed == ptx::Type::s32);
  }
  return wanted == ElementType::b8;
}

/// Whether the memory is there, of that type, large enough, aligned, and within the address space.
[[nodiscard]] constexpr bool usable(const OperandUse& use) noexcept {
  if (!use.present) return use.memory.address == 0;
  const std::uint64_t needs = use.needs();
  return type_fits(use.memory.type, use.type) &&
         (needs == 0 || (use.memory.address != 0 && use.memory.bytes >= needs &&
                         needs <= std::numeric_limits<std::uint64_t>::max() - use.memory.address &&
                         use.memory.address % use.alignment == 0));
}

/// Whether two operands may be used together: they are disjoint, or both are only read, or they are
/// `same`: identical where the kernel reads each element before it writes it.
[[nodiscard]] constexpr bool may_be_together(const OperandUse& a, const OperandUse& b,
                                             bool same) noexcept {
  if (!a.written && !b.written) return true;
  const std::uint64_t a_needs = a.present ? a.needs() : 0;
  const std::uint64_t b_needs = b.present ? b.needs() : 0;
  return a_needs == 0 || b_needs == 0 || a.memory.address + a_needs <= b.memory.address ||
         b.memory.address + b_needs <= a.memory.address ||
         (same && a.memory.address == b.memory.address);
}

/// Throws the `Error` (Stage::Launch) for the first operand that is not `usable` ("arguments" for
/// one that the shape does not have, "operand-type", "null-pointer", "buffer-size", "misaligned"),
/// then for the first pair that may not be together ("aliasing"). `same(i, j)` says whether the
/// two may be identical. `shape` is text: "k = 5, n = 7".
[[noreturn]] void refuse_operands(std::string_view kernel, const std::string& shape,
                                  std::span<const OperandUse> uses,
                                  bool (*same)(std::size_t, std::size_t));

}  // namespace ptxgen::inline v0
