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

std::string elements_text(std::uint64_t count, std::uint32_t element) {
  const bool counts = count <= std::numeric_limits<std::uint64_t>::max() / element;
  return count_text(count, "element") +
         (counts ? format_text(" ({})", count_text(count * element, "byte"))
                 : " (more than 2^64 bytes)");
}

std::string place_text(const BufferArgument& buffer) {
  return format_text("{} at {} ({})", buffer.name, hexadecimal(buffer.address),
                     count_text(buffer.needs * buffer.element, "byte"));
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
           format_text("{} is a null pointer, but {} needs {} ; pass device memory", name, shape,
                       elements_text(buffer.needs, buffer.element)));
  }
  if (buffer.holds < buffer.needs) {
    refuse(kernel, "buffer-size",
           format_text("{} holds {}, but {} needs {}; pass a larger buffer or a smaller shape",
                       name, elements_text(buffer.holds, buffer.element), shape,
                       elements_text(buffer.needs, buffer.element)));
  }
  if (buffer.address % buffer.element != 0) {
    refuse(
        kernel, "misaligned",
        format_text(
            "{} is at {}, which is not a multiple of its {}-byte elements; pass an aligned address",
            name, hexadecimal(buffer.address), buffer.element));
  }
  refuse(
      kernel, "buffer-size",
      format_text("{} at {} would end past the last address: {} needs {}", name,
                  hexadecimal(buffer.address), shape, elements_text(buffer.needs, buffer.element)));
}

}  // namespace

void refuse_arguments(std::string_view kernel, const std::string& shape,
                      std::span<const BufferArgument> buffers, Overlap allowed) {
  for (const BufferArgument& buffer : buffers) check_buffer(kernel, shape, buffer);
  const BufferArgument& output = buffers.front();
  for (const BufferArgument& input : buffers.subspan(1)) {
    if (overlap_is_allowed(output, input, allowed)) continue;
    const std::string out(output.name);
    const std::string in(input.name);
    refuse(
        kernel, "aliasing",
        format_text(
            "{} overlaps {}{}", place_text(output), place_text(input),
            allowed == Overlap::Same
                ? format_text("; {} may be {} itself, but not a shifted part of it", out, in)
                : format_text("; the kernel reads {} while it writes {}: give {} separate memory",
                              in, out, out)));
  }
  refuse(kernel, "arguments", "the arguments do not fit " + shape);
}

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
