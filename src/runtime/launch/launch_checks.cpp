// src/runtime/launch/launch_checks.cpp - arguments of a launch against signature and shape
#include "runtime/launch/launch_checks.hpp"

#include <charconv>
#include <cstring>

#include "ptxgen/ptx/types.hpp"
#include "ptxgen/support/error.hpp"
#include "support/count.hpp"

namespace ptxgen::inline v0 {

namespace {

std::string hexadecimal(std::uint64_t value) {
  char digits[16];
  const auto [end, code] = std::to_chars(digits, digits + sizeof digits, value, 16);
  return "0x" + std::string(digits, code == std::errc{} ? end : digits);
}

std::string elements_text(std::uint64_t count, std::uint32_t element) {
  const bool counts = count <= std::numeric_limits<std::uint64_t>::max() / element;
  return count_text(count, "element") +
         (counts ? " (" + count_text(count * element, "byte") + ")" : " (more than 2^64 bytes)");
}

std::string place_text(const BufferArgument& buffer) {
  return std::string(buffer.name) + " at " + hexadecimal(buffer.address) + " (" +
         count_text(buffer.needs * buffer.element, "byte") + ")";
}

[[noreturn]] void refuse(std::string_view kernel, const char* code, std::string message) {
  Error error(Stage::Launch, code, std::move(message));
  error.kernel = kernel;
  throw error.refresh();
}

void check_buffer(std::string_view kernel, const std::string& shape, const BufferArgument& buffer) {
  if (usable(buffer)) return;
  const std::string name(buffer.name);
  if (buffer.address == 0) {
    refuse(kernel, "null-pointer",
           name + " is a null pointer, but " + shape + " needs " +
               elements_text(buffer.needs, buffer.element) + " there; pass device memory");
  }
  if (buffer.holds < buffer.needs) {
    refuse(kernel, "buffer-size",
           name + " holds " + elements_text(buffer.holds, buffer.element) + ", but " + shape +
               " needs " + elements_text(buffer.needs, buffer.element) +
               "; pass a larger buffer or a smaller shape");
  }
  if (buffer.address % buffer.element != 0) {
    refuse(kernel, "misaligned",
           name + " is at " + hexadecimal(buffer.address) + ", which is no multiple of its " +
               std::to_string(buffer.element) +
               "-byte elements; pass the address of a whole element");
  }
  refuse(kernel, "buffer-size",
         name + " at " + hexadecimal(buffer.address) + " would end beyond the last address: " +
             shape + " needs " + elements_text(buffer.needs, buffer.element));
}

}  // namespace

void refuse_arguments(std::string_view kernel, const std::string& shape,
                      std::span<const BufferArgument> buffers, Overlap allowed) {
  for (const BufferArgument& buffer : buffers) check_buffer(kernel, shape, buffer);
  const BufferArgument& output = buffers.front();
  for (const BufferArgument& input : buffers.subspan(1)) {
    if (lies_well(output, input, allowed)) continue;
    const std::string out(output.name);
    const std::string in(input.name);
    refuse(kernel, "aliasing",
           place_text(output) + " overlaps " + place_text(input) +
               (allowed == Overlap::Same
                    ? "; " + out + " may be " + in + " itself, but not a shifted part of it"
                    : "; the kernel reads " + in + " while it writes " + out + ": give " + out +
                          " memory of its own"));
  }
  refuse(kernel, "arguments", "the arguments do not fit " + shape);
}

void check_block(std::string_view kernel, const Signature& signature,
                 std::span<const std::byte> arguments) {
  if (arguments.size() != signature.size()) {
    refuse(kernel, "arguments",
           "the argument block has " + count_text(arguments.size(), "byte") +
               ", but the kernel's " + count_text(signature.parameters.size(), "parameter") +
               " take " + std::to_string(signature.size()) + "; lay it out with Kernel<...>::pack");
  }
  for (const Parameter& parameter : signature.parameters) {
    if (!parameter.pointer || parameter.size != sizeof(std::uint64_t)) continue;
    std::uint64_t address = 0;
    std::memcpy(&address, arguments.data() + parameter.offset, sizeof address);
    const std::uint32_t element = ptx::bytes(parameter.element);
    if (element > 1 && address % element != 0) {
      refuse(kernel, "misaligned",
             "parameter " + parameter.name + " is " + hexadecimal(address) +
                 ", which is no multiple of its " + std::to_string(element) +
                 "-byte elements; pass the address of a whole element");
    }
  }
}

}  // namespace ptxgen::inline v0
