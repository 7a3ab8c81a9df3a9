// src/runtime/launch/launch_checks.cpp - arguments of a launch against signature and shape
#include "runtime/launch/launch_checks.hpp"

#include <charconv>
#include <cstring>

#include "ptxgen/ptx/types.hpp"
#include "ptxgen/support/error.hpp"
#include "support/count.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0 {

namespace {

std::string hexadecimal(std::uint64_t value) {
  char digits[16];
  const auto [end, code] = std::to_chars(digits, digits + sizeof digits, value, 16);
  return "0x" + std::string(digits, code == std::errc{} ? end : digits);
}

[[noreturn]] void refuse(std::string_view kernel, const char* code, std::string message) {
  Error error(Stage::Launch, code, std::move(message));
  error.kernel = kernel;
  throw error.refresh();
}

}  // namespace

void check_block(std::string_view kernel, const Signature& signature,
                 std::span<const std::byte> arguments) {
  if (arguments.size() != signature.size()) {
    refuse(
        kernel, "arguments",
        format_text("the argument block has {}, but the kernel's {} take {}; use Kernel<...>::pack",
                    count_text(arguments.size(), "byte"),
                    count_text(signature.parameters.size(), "parameter"), signature.size()));
  }
  for (const Parameter& parameter : signature.parameters) {
    if (!parameter.pointer || parameter.size != sizeof(std::uint64_t)) continue;
    std::uint64_t address = 0;
    std::memcpy(&address, arguments.data() + parameter.offset, sizeof address);
    const std::uint32_t element = ptx::bytes(parameter.element);
    if (element > 1 && address % element != 0) {
      refuse(kernel, "misaligned",
             format_text("parameter {} is {}, which is not a multiple of its {}-byte elements; "
                         "pass an aligned address",
                         parameter.name, hexadecimal(address), element));
    }
  }
}

}  // namespace ptxgen::inline v0
