// tests/driver/cuda_h/compare.cpp - our declarations of the driver beside cuda.h
// Old functions and those for per-thread default streams are only declared with this.
#define __CUDA_API_VERSION_INTERNAL 1
#include <cuda.h>
#include <cudaTypedefs.h>

#include <cstddef>
#include <cstdio>
#include <string>
#include <type_traits>

#include "ptxgen/driver/api.hpp"

namespace ours = ptxgen::driver;

namespace {

/// Which type of cuda.h one of ours stands for; filled by the generated file.
template <class Ours>
struct Twin {
  using Type = void;
};

/// Equal but for names: pointers to the same, enumerations and structures that are twins, integers
/// of one size and signedness.
template <class Ours, class Theirs>
struct Same {
  static constexpr bool value = [] {
    if constexpr (std::is_integral_v<Ours> && std::is_integral_v<Theirs>) {
      return sizeof(Ours) == sizeof(Theirs) && std::is_signed_v<Ours> == std::is_signed_v<Theirs> &&
             std::is_same_v<Ours, char> == std::is_same_v<Theirs, char>;
    } else {
      return std::is_same_v<Ours, Theirs> || std::is_same_v<typename Twin<Ours>::Type, Theirs>;
    }
  }();
};
template <class Ours, class Theirs>
struct Same<const Ours, const Theirs> : Same<Ours, Theirs> {};
template <class Ours, class Theirs>
struct Same<Ours*, Theirs*> : Same<Ours, Theirs> {};
template <class Ours, class Theirs, std::size_t n>
struct Same<Ours[n], Theirs[n]> : Same<Ours, Theirs> {};
template <class Ours, class... OurArguments, class Theirs, class... TheirArguments>
struct Same<Ours(OurArguments...), Theirs(TheirArguments...)> {
  static constexpr bool value = [] {
    if constexpr (sizeof...(OurArguments) != sizeof...(TheirArguments)) {
      return false;
    } else {
      return Same<Ours, Theirs>::value && (Same<OurArguments, TheirArguments>::value && ...);
    }
  }();
};

int compared = 0;
int different = 0;

void compare(bool equal, const std::string& what) {
  ++compared;
  if (equal) return;
  ++different;
  std::printf("differs: %s\n", what.c_str());
}

template <class Ours, class Theirs>
void compare_number(const char* what, Ours our_value, Theirs their_value) {
  const auto our_number = static_cast<long long>(our_value);
  const auto their_number = static_cast<long long>(their_value);
  compare(our_number == their_number, std::string(what) + ": ours " + std::to_string(our_number) +
                                          ", cuda.h " + std::to_string(their_number));
}

template <class OurMember, class TheirMember>
void compare_member(const char* what, std::size_t our_offset, std::size_t their_offset,
                    bool same_type) {
  compare_number(what, our_offset, their_offset);
  compare(sizeof(OurMember) == sizeof(TheirMember), std::string(what) + ": its size");
  compare(same_type, std::string(what) + ": its type");
}

}  // namespace

#define PTXGEN_TWIN(type, twin) \
  template <>                   \
  struct Twin<ours::type> {     \
    using Type = twin;          \
  };
namespace {
#include "twins.inc"
}
#undef PTXGEN_TWIN

// With the namespace open, the words of functions.def mean our types.
namespace ptxgen::driver {
namespace {
#define PTXGEN_DRIVER_FUNCTION(field, symbol, need, since, effect, parameters, arguments) \
  using Signature_##field = CUresult parameters;
#include "ptxgen/driver/functions.def"
}  // namespace
}  // namespace ptxgen::driver

int main() {
#define PTXGEN_NUMBER(name) compare_number(#name, ours::name, ::name);
#define PTXGEN_CONSTANT(name, macro) \
  compare_number(#macro, ours::name, (unsigned long long)(macro));
#define PTXGEN_STRUCT(type)                                          \
  compare_number(#type ": bytes", sizeof(ours::type), sizeof(type)); \
  compare_number(#type ": alignment", alignof(ours::type), alignof(type));
#define PTXGEN_MEMBER(type, member)                                            \
  compare_member<decltype(ours::type{}.member), decltype(type{}.member)>(      \
      #type "." #member, offsetof(ours::type, member), offsetof(type, member), \
      Same<decltype(ours::type{}.member), decltype(type{}.member)>::value);
// Where ours says void* for a type that it does not declare.
#define PTXGEN_UNTYPED_MEMBER(type, member)                                    \
  compare_member<decltype(ours::type{}.member), decltype(type{}.member)>(      \
      #type "." #member, offsetof(ours::type, member), offsetof(type, member), \
      std::is_pointer_v<decltype(type{}.member)>);
#define PTXGEN_TYPE(type) compare(Same<ours::type, ::type>::value, #type);
#define PTXGEN_SIGNATURE(field, symbol, typedefed)                                          \
  compare(Same<ours::Signature_##field, decltype(::symbol)>::value, #symbol ": signature"); \
  compare(std::is_same_v<decltype(&::symbol), typedefed>, #symbol ": is not " #typedefed);
#include "rows.inc"
  std::printf("%d facts compared with cuda.h of CUDA %d.%d, %d differ\n", compared,
              CUDA_VERSION / 1000, CUDA_VERSION % 1000 / 10, different);
  return different == 0 ? 0 : 1;
}
