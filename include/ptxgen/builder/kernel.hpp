// ptxgen/builder/kernel.hpp - a finished kernel, its signature and its argument block
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "ptxgen/builder/pointer.hpp"
#include "ptxgen/ptx/ir.hpp"

namespace ptxgen::inline v0 {

/// One parameter of a kernel, in the order of the text.
struct Parameter {
  std::string name;
  ptx::Type type = ptx::Type::none;  ///< as declared; `u64` for pointers
  std::uint32_t size = 0;            ///< bytes
  std::uint32_t offset = 0;          ///< bytes from the start of the argument block
  bool pointer = false;
  ptx::Space space = ptx::Space::Generic;  ///< of what a pointer points to
  ptx::Type element = ptx::Type::none;     ///< of what a pointer points to
};

/// What a kernel is to be launched with, for the C API, the program and the launcher.
struct Signature {
  std::vector<Parameter> parameters;

  /// Bytes of the argument block.
  [[nodiscard]] std::uint32_t size() const noexcept {
    return parameters.empty() ? 0 : parameters.back().offset + parameters.back().size;
  }
};

/// A verified module with one entry, and that entry's signature. Plain data.
class BuiltKernel {
 public:
  BuiltKernel(ptx::Module module, Signature signature);
  // Not in the header: what they instantiate would be paid for by every file that includes it.
  BuiltKernel(const BuiltKernel& other);
  BuiltKernel(BuiltKernel&& other) noexcept;
  BuiltKernel& operator=(const BuiltKernel& other);
  BuiltKernel& operator=(BuiltKernel&& other) noexcept;
  ~BuiltKernel();

  [[nodiscard]] const ptx::Module& module() const noexcept { return module_; }
  [[nodiscard]] const Signature& signature() const noexcept { return signature_; }
  [[nodiscard]] std::string_view name() const noexcept;
  [[nodiscard]] std::string_view target() const noexcept { return module_.target; }
  /// The module as text; the same bytes for the same kernel in every process.
  [[nodiscard]] std::string ptx() const;

 private:
  ptx::Module module_;
  Signature signature_;
};

/// The address of elements T in device memory, as a launch passes it.
template <class T>
struct DeviceAddress {
  std::uint64_t value = 0;
};

namespace detail {

/// What the host passes for a parameter. Half-precision and packed types go as their bit pattern.
template <class T>
struct HostImpl {
  static_assert(!kSame<T, T>, "a kernel parameter is an element type or a Ptr to global memory");
};
template <>
struct HostImpl<u8> {
  using type = std::uint8_t;
};
template <>
struct HostImpl<u16> {
  using type = std::uint16_t;
};
template <>
struct HostImpl<u32> {
  using type = std::uint32_t;
};
template <>
struct HostImpl<u64> {
  using type = std::uint64_t;
};
template <>
struct HostImpl<s8> {
  using type = std::int8_t;
};
template <>
struct HostImpl<s16> {
  using type = std::int16_t;
};
template <>
struct HostImpl<s32> {
  using type = std::int32_t;
};
template <>
struct HostImpl<s64> {
  using type = std::int64_t;
};
template <>
struct HostImpl<b8> : HostImpl<u8> {};
template <>
struct HostImpl<b16> : HostImpl<u16> {};
template <>
struct HostImpl<b32> : HostImpl<u32> {};
template <>
struct HostImpl<b64> : HostImpl<u64> {};
template <>
struct HostImpl<f16> : HostImpl<u16> {};
template <>
struct HostImpl<bf16> : HostImpl<u16> {};
template <>
struct HostImpl<f16x2> : HostImpl<u32> {};
template <>
struct HostImpl<bf16x2> : HostImpl<u32> {};
template <>
struct HostImpl<f32> {
  using type = float;
};
template <>
struct HostImpl<f64> {
  using type = double;
};
template <class T, class S>
struct HostImpl<Ptr<T, S>> {
  static_assert(!S::kNarrow, "a launch cannot pass a pointer into shared or local memory");
  using type = DeviceAddress<T>;
};
template <class T>
using Host = typename HostImpl<T>::type;

template <class... Args>
[[nodiscard]] constexpr auto argument_offsets() noexcept {
  std::array<std::uint32_t, sizeof...(Args) + 1> offsets{};
  std::uint32_t end = 0;
  std::size_t i = 0;
  (((end = (end + std::uint32_t{sizeof(Host<Args>)} - 1) / std::uint32_t{sizeof(Host<Args>)} *
           std::uint32_t{sizeof(Host<Args>)}),
    (offsets[i++] = end), (end += std::uint32_t{sizeof(Host<Args>)})),
   ...);
  offsets[i] = end;
  return offsets;
}

template <class... A>
struct TypeList {};

}  // namespace detail

/// The C++ type that a parameter or element has on the host: float for `f32`, `std::uint16_t` (the
/// bits) for `f16`, `DeviceAddress<T>` for `Ptr<T>`.
template <class T>
using HostType = detail::Host<T>;

/// The arguments of one launch, laid out as the driver takes them.
template <std::size_t kBytes, std::size_t kCount>
struct ArgumentBlock {
  alignas(16) std::array<std::byte, kBytes == 0 ? 1 : kBytes> bytes{};
  std::array<std::uint32_t, kCount + 1> offsets{};  ///< the last one is the size

  [[nodiscard]] const std::byte* data() const noexcept { return bytes.data(); }
  [[nodiscard]] static constexpr std::size_t size() noexcept { return kBytes; }
  [[nodiscard]] static constexpr std::size_t count() noexcept { return kCount; }
  [[nodiscard]] const std::byte* argument(std::size_t i) const noexcept {
    return bytes.data() + offsets[i];
  }
};

/// A kernel whose C++ type says what it is launched with: `Kernel<Ptr<f32>, f32, u32>`.
template <class... Args>
class Kernel : public BuiltKernel {
 public:
  static constexpr auto kOffsets = detail::argument_offsets<Args...>();

  explicit Kernel(BuiltKernel built) : BuiltKernel(static_cast<BuiltKernel&&>(built)) {}

  /// Whether these are the host types of the parameters, one for one: `float` for f32,
  /// `std::uint32_t` for u32, `DeviceAddress<f32>` for Ptr<f32>, ... Nothing is converted.
  template <class... A>
  static constexpr bool kAccepts =
      detail::kSame<detail::TypeList<A...>, detail::TypeList<detail::Host<Args>...>>;

  /// The argument block of a launch.
  template <class... A>
  [[nodiscard]] static auto pack(const A&... arguments) {
    static_assert(sizeof...(A) == sizeof...(Args),
                  "the launch has another number of arguments than the kernel has parameters");
    static_assert(sizeof...(A) != sizeof...(Args) || kAccepts<A...>,
                  "an argument of the launch has another type than the kernel's parameter");
    ArgumentBlock<kOffsets[sizeof...(Args)], sizeof...(Args)> block;
    block.offsets = kOffsets;
    std::size_t i = 0;
    (std::memcpy(block.bytes.data() + kOffsets[i++], &arguments, sizeof arguments), ...);
    return block;
  }
};

}  // namespace ptxgen::inline v0
