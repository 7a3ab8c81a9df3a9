// src/kernels/catalog.cpp - the catalog of kernels
#include <string>
#include <type_traits>

#include "kernels/gemv/catalog_gemv.hpp"
#include "ptxgen/kernels.hpp"
#include "ptxgen/support/error.hpp"
#include "support/count.hpp"
#include "support/format.hpp"
#include "support/join.hpp"

namespace ptxgen::inline v0 {

namespace {

constexpr std::uint64_t kMax32 = 0xffffffffu;
constexpr std::uint64_t kMax31 = 0x7fffffffu;  // s32 parameters, and the largest grid

constexpr std::string_view kWideAccess =
    "coalesced: consecutive lanes on consecutive 16 bytes, or elements where these are misaligned";

// One parameter of a kernel spec: its metadata and the member it sets.
template <typename Spec>
struct Parameter {
  ParameterInfo info;
  std::uint32_t Spec::*member;
};

template <typename Spec>
struct Description;  // doc, access pattern, parameters

template <>
struct Description<Copy> {
  static constexpr std::string_view kDoc = "out[i] = in[i], 4-byte elements bit for bit";
  static constexpr std::string_view kAccess = kWideAccess;
  static constexpr Parameter<Copy> kParameters[] = {
      {{"n", "u32", 1u << 20, 1, kMax32, "elements"}, &Copy::n}};
};

template <>
struct Description<FmaRpt> {
  static constexpr std::string_view kDoc = "out[i] = in[i] after k times x = fma(x, a, b), f32";
  static constexpr std::string_view kAccess = kWideAccess;
  static constexpr Parameter<FmaRpt> kParameters[] = {
      {{"n", "u32", 1u << 20, 1, kMax31, "elements"}, &FmaRpt::n},
      {{"k", "u32", 128, 0, kMax31, "fused multiply-adds per element"}, &FmaRpt::k}};
};

template <>
struct Description<GemvCoalesced> {
  static constexpr std::string_view kDoc =
      "y = x^T A, A[k x n] row-major f32, one thread per column";
  static constexpr std::string_view kAccess =
      "coalesced: consecutive lanes read consecutive columns of a row; x through a shared tile";
  static constexpr Parameter<GemvCoalesced> kParameters[] = {
      {{"k", "u32", 4096, 0, kMax32, "rows of A, elements of x"}, &GemvCoalesced::k},
      {{"n", "u32", 4096, 1, kMax32, "columns of A, elements of y"}, &GemvCoalesced::n}};
};

template <>
struct Description<GemvStrided> {
  static constexpr std::string_view kDoc = "y = x^T A, A[k x n] row-major f32, one warp per column";
  static constexpr std::string_view kAccess =
      "strided: consecutive lanes read one column, n * 4 bytes apart; the uncoalesced baseline";
  static constexpr Parameter<GemvStrided> kParameters[] = {
      {{"k", "u32", 4096, 0, kMax32, "rows of A, elements of x"}, &GemvStrided::k},
      {{"n", "u32", 4096, 1, kMax31, "columns of A, elements of y"}, &GemvStrided::n}};
};

template <class T>
struct Description<VaddOf<T>> {
  static constexpr std::string_view kDoc = detail::kSame<T, f32>   ? "c[i] = a[i] + b[i], f32"
                                           : detail::kSame<T, f16> ? "c[i] = a[i] + b[i], f16"
                                                                   : "c[i] = a[i] + b[i], bf16";
  static constexpr std::string_view kAccess = kWideAccess;
  static constexpr Parameter<VaddOf<T>> kParameters[] = {
      {{"n", "u32", 1u << 20, 1, kMax32, "elements"}, &VaddOf<T>::n}};
};

template <typename Spec>
constexpr auto kParameterInfo = [] {
  std::array<ParameterInfo, std::size(Description<Spec>::kParameters)> infos{};
  for (std::size_t i = 0; i < infos.size(); ++i) infos[i] = Description<Spec>::kParameters[i].info;
  return infos;
}();

template <typename Spec>
Spec spec_of(std::span<const std::uint64_t> values) {
  const auto& parameters = Description<Spec>::kParameters;
  check_values(Spec::kName, kParameterInfo<Spec>, values);
  Spec spec;
  for (std::size_t i = 0; i < values.size(); ++i) {
    spec.*parameters[i].member = static_cast<std::uint32_t>(values[i]);
  }
  return spec;
}

template <typename Spec>
constexpr CatalogEntry entry() {
  using Values = std::span<const std::uint64_t>;
  return {Spec::kName,
          Description<Spec>::kDoc,
          Description<Spec>::kAccess,
          kParameterInfo<Spec>,
          [](Values values, const ptx::Target& target) {
            return spec_of<Spec>(values).build(target).module();
          },
          [](Values values, const ptx::Target&) { return spec_of<Spec>(values).geometry(); },
          [](Values values) { return spec_of<Spec>(values).cost(); }};
}

constexpr CatalogEntry kCatalog[] = {entry<Copy>(),          entry<FmaRpt>(),      kGemvEntry,
                                     entry<GemvCoalesced>(), entry<GemvStrided>(), entry<Vadd>(),
                                     entry<VaddBf16>(),      entry<VaddF16>()};

}  // namespace

void check_values(std::string_view kernel, std::span<const ParameterInfo> parameters,
                  std::span<const std::uint64_t> values) {
  const auto refuse = [&](std::string message) {
    Error error(Stage::Build, "bad-parameter", std::move(message));
    error.kernel = kernel;
    throw error.refresh();
  };
  if (values.size() != parameters.size()) {
    refuse(
        format_text("takes {}, not {}", count_text(parameters.size(), "parameter"), values.size()));
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    const ParameterInfo& info = parameters[i];
    if (values[i] >= info.min && values[i] <= info.max) continue;
    refuse(format_text("{} is {}, outside {}..{}", info.name, values[i], info.min, info.max));
  }
}

std::span<const CatalogEntry> catalog() noexcept { return kCatalog; }

const CatalogEntry* find_kernel(std::string_view name) noexcept {
  for (const CatalogEntry& entry : kCatalog) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

const CatalogEntry& kernel_named(std::string_view name) {
  if (const CatalogEntry* const found = find_kernel(name)) return *found;
  throw Error(Stage::Build, "no-kernel",
              format_text("there is no kernel '{}'; there are: {}", name,
                          join_text(kCatalog, ", ", &CatalogEntry::name)));
}

std::size_t parameter_index(const CatalogEntry& kernel, std::string_view name) {
  for (std::size_t i = 0; i < kernel.parameters.size(); ++i) {
    if (kernel.parameters[i].name == name) return i;
  }
  throw Error(Stage::Build, "bad-parameter",
              format_text("{} has no parameter '{}'; it has: {}", kernel.name, name,
                          join_text(kernel.parameters, ", ", &ParameterInfo::name)));
}

}  // namespace ptxgen::inline v0
