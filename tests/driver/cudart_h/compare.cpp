// tests/driver/cudart_h/compare.cpp - our declarations of the runtime beside cuda_runtime_api.h
#include <cuda_runtime_api.h>
#if __has_include(<cuda_profiler_api.h>)
#include <cuda_profiler_api.h>
#endif

#include <cstddef>
#include <cstdio>
#include <string>
#include <type_traits>

#include "driver/cudart/api.hpp"

// Headers of CUDA 12 rename functions; here every symbol is meant by its own name.
#undef cudaGetDeviceProperties
#undef cudaMemAdvise
#undef cudaMemPrefetchAsync
#undef cudaStreamGetCaptureInfo
#undef cudaGraphAddDependencies
#undef cudaGraphAddNode
#undef cudaGraphGetEdges
#undef cudaGraphNodeGetDependencies
#undef cudaGraphNodeGetDependentNodes
#undef cudaGraphRemoveDependencies
#undef cudaStreamUpdateCaptureDependencies
#undef cudaEventElapsedTime

namespace ours = ptxgen::driver::cudart;

namespace {

/// Which type of the toolkit one of ours stands for; filled by the generated file.
template <class Ours>
struct Twin {
  using Type = void;
};

/// Equal but for names: pointers to the same, structures that are twins, enumerations and integers
/// of one size and signedness.
template <class Ours, class Theirs>
struct Same {
  static constexpr bool value = [] {
    if constexpr (std::is_integral_v<Ours> && std::is_integral_v<Theirs>) {
      return sizeof(Ours) == sizeof(Theirs) && std::is_signed_v<Ours> == std::is_signed_v<Theirs>;
    } else if constexpr (std::is_enum_v<Ours> && std::is_enum_v<Theirs>) {
      return sizeof(Ours) == sizeof(Theirs);
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

void compare_number(const char* what, long long our_number, long long their_number) {
  compare(our_number == their_number, std::string(what) + ": ours " + std::to_string(our_number) +
                                          ", theirs " + std::to_string(their_number));
}

}  // namespace

#define PTXGEN_TWIN(type, twin) \
  template <>                   \
  struct Twin<type> {           \
    using Type = twin;          \
  };
namespace {
#include "twins.inc"
}

// With the namespace open, the words of the .def files mean our types.
namespace ptxgen::driver::cudart {
namespace {
#include "signatures.inc"
}  // namespace
}  // namespace ptxgen::driver::cudart

int main() {
#define PTXGEN_NUMBER(name) compare_number(#name, ours::name, ::name);
#define PTXGEN_STRUCT(type, twin)                                      \
  compare_number(#type ": bytes", sizeof(ours::type), sizeof(::twin)); \
  compare_number(#type ": alignment", alignof(ours::type), alignof(::twin));
#define PTXGEN_MEMBER(type, twin, member)                                                    \
  compare_number(#type "." #member, offsetof(ours::type, member), offsetof(::twin, member)); \
  compare(Same<decltype(ours::type::member), decltype(::twin::member)>::value,               \
          #type "." #member ": its type");
#define PTXGEN_SIGNATURE(symbol) \
  compare(Same<ours::Signature_##symbol, decltype(::symbol)>::value, #symbol ": signature");
#include "rows.inc"
  std::printf("%d facts compared with the headers of CUDA %d.%d, %d differ\n", compared,
              CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10, different);
  return different == 0 ? 0 : 1;
}
