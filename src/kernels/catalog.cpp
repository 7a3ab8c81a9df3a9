// src/kernels/catalog.cpp - the catalog of kernels, from kernels.def
#include "ptxgen/kernels.hpp"
#include "ptxgen/support/error.hpp"
#include "support/format.hpp"
#include "support/join.hpp"

namespace ptxgen::inline v0 {

namespace {

constexpr KernelDescription kCatalog[] = {
#define PTXGEN_KERNEL(type) kDescription<type>,
#include "ptxgen/kernels/kernels.def"
#undef PTXGEN_KERNEL
};

constexpr bool in_order() {
  for (std::size_t i = 1; i < std::size(kCatalog); ++i) {
    if (!(kCatalog[i - 1].name < kCatalog[i].name)) return false;
  }
  return true;
}
static_assert(in_order(), "kernels.def is in alphabetical order of the names");

}  // namespace

std::span<const KernelDescription> catalog() noexcept { return kCatalog; }

const KernelDescription* find_kernel(std::string_view name) noexcept {
  for (const KernelDescription& kernel : kCatalog) {
    if (kernel.name == name) return &kernel;
  }
  return nullptr;
}

const KernelDescription& kernel_named(std::string_view name) {
  if (const KernelDescription* const found = find_kernel(name)) return *found;
  throw Error(Stage::Build, "no-kernel",
              format_text("there is no kernel '{}'; there are: {}", name,
                          join_text(kCatalog, ", ", &KernelDescription::name)));
}

}  // namespace ptxgen::inline v0
