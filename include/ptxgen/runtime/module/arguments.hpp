// ptxgen/runtime/module/arguments.hpp - typed arguments of a launch
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "ptxgen/builder/kernel.hpp"
#include "ptxgen/kernels/view.hpp"
#include "ptxgen/runtime/device/buffer.hpp"

namespace ptxgen::inline v0 {

namespace detail {

/// The value that is passed for an argument: the address for device memory, anything else
/// unchanged.
template <class T>
[[nodiscard]] const T& passed(const T& argument) noexcept {
  return argument;
}
template <class T>
[[nodiscard]] DeviceAddress<T> passed(const Buffer<T>& argument) noexcept {
  return argument.address();
}
template <class T>
[[nodiscard]] DeviceAddress<T> passed(const DeviceSpan<T>& argument) noexcept {
  return argument.address;
}
template <class T>
[[nodiscard]] auto passed(const DeviceView<T>& argument) noexcept {
  return argument.address();
}

/// One argument of a typed launch. On a mismatch the compiler's message shows position, parameter
/// type and argument type as arguments of this template.
template <std::size_t kPosition, class ParameterType, class ArgumentType>
struct LaunchArgument {
  using Passed = std::remove_cvref_t<decltype(passed(std::declval<const ArgumentType&>()))>;
  static constexpr bool kFits = kSame<Passed, Host<ParameterType>>;
  static_assert(
      kFits,
      "an argument of the launch does not match its parameter: see LaunchArgument<position,"
      " parameter, argument>; pass a Buffer<T>, DeviceSpan<T> or DeviceAddress<T> for a "
      "Ptr<T>, and exactly the host type for a scalar (float for f32, std::uint32_t for "
      "u32: 1u, not 1)");
};

/// The counts of a typed launch. On a mismatch the compiler's message shows both as arguments of
/// this template.
template <std::size_t kArguments, std::size_t kParameters>
struct LaunchArgumentCount {
  static constexpr bool kFits = kArguments == kParameters;
  static_assert(kFits,
                "the launch has another number of arguments than the kernel has parameters: see "
                "LaunchArgumentCount<arguments, parameters>");
};

template <class... P, class... A, std::size_t... I>
[[nodiscard]] auto pack_typed(TypeList<P...>, std::index_sequence<I...>, const A&... arguments) {
  if constexpr ((LaunchArgument<I + 1, P, A>::kFits && ...)) {
    return Kernel<P...>::pack(passed(arguments)...);
  } else {
    return ArgumentBlock<0, 0>{};
  }
}

/// The argument block of a launch of a kernel with the parameters P.
template <class... P, class... A>
[[nodiscard]] auto pack_launch(TypeList<P...> parameters, const A&... arguments) {
  if constexpr (LaunchArgumentCount<sizeof...(A), sizeof...(P)>::kFits) {
    return pack_typed(parameters, std::index_sequence_for<P...>{}, arguments...);
  } else {
    return ArgumentBlock<0, 0>{};
  }
}

}  // namespace detail

/// One argument of a launch whose kernel is known only at run time: a view of the caller's value,
/// which must outlive it. Implicitly convertible from device memory (`Buffer`, `DeviceSpan`,
/// `DeviceAddress`), numbers, and trivially copyable structures.
class LaunchValue {
 public:
  enum class Kind : std::uint8_t {
    Bytes,    ///< any type: only the size is checked
    Integer,  ///< signed or unsigned; the bit pattern of f16 and bf16 too
    Float,    ///< float or double
    Pointer,  ///< an address in device memory
  };

  template <class T>
  LaunchValue(const Buffer<T>& memory) noexcept : LaunchValue(memory.address()) {}
  template <class T>
  LaunchValue(const DeviceSpan<T>& memory) noexcept : LaunchValue(memory.address) {}
  template <class T>
  LaunchValue(DeviceAddress<T> memory) noexcept
      : kind_(Kind::Pointer),
        element_(T::kType),
        bytes_(sizeof(std::uint64_t)),
        address_(memory.value) {}
  template <class T>
  requires(std::is_trivially_copyable_v<T> && !std::is_pointer_v<T> && !std::is_array_v<T> &&
           !std::is_null_pointer_v<T>) LaunchValue(const T& value)
  noexcept
      : kind_(std::is_floating_point_v<T>                  ? Kind::Float
              : std::is_integral_v<T> || std::is_enum_v<T> ? Kind::Integer
                                                           : Kind::Bytes),
        bytes_(sizeof(T)),
        value_(&value) {}
  /// `bytes` bytes at `value`, for languages without these types. `value` is not null.
  LaunchValue(Kind kind, const void* value, std::size_t bytes) noexcept
      : kind_(kind), bytes_(bytes), value_(value) {}

  [[nodiscard]] Kind kind() const noexcept { return kind_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] const void* data() const noexcept { return value_ != nullptr ? value_ : &address_; }
  /// Element type of a pointer; none: unknown.
  [[nodiscard]] ptx::Type element() const noexcept { return element_; }

 private:
  Kind kind_ = Kind::Bytes;
  ptx::Type element_ = ptx::Type::none;
  std::size_t bytes_ = 0;
  std::uint64_t address_ = 0;
  const void* value_ = nullptr;
};

/// The declared parameters of an entry with their offsets in the argument block. PTX does not give
/// the element type of a pointer (`none`), and an array of bytes is a structure.
[[nodiscard]] Signature signature_of(const ptx::Module& module, const ptx::Function& entry);

/// The argument block of a launch. Throws `Error` (Stage::Launch, "arguments") naming position,
/// parameter and both types: a wrong number of arguments, a wrong size, a float for an integer or
/// the reverse, or memory of another element type than a built kernel's pointer has.
[[nodiscard]] std::vector<std::byte> pack_arguments(std::string_view kernel,
                                                    const Signature& signature,
                                                    std::span<const LaunchValue> arguments);

}  // namespace ptxgen::inline v0
