// src/kernels/operand.cpp - refusals of operands
#include "ptxgen/kernels/operand.hpp"

#include "ptxgen/support/error.hpp"
#include "support/count.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0 {

namespace detail {

void throw_subspan(std::uint64_t first, std::uint64_t count, std::uint64_t has) {
  throw Error(Stage::Device, "out-of-bounds",
              format_text("{} from index {} on are not within {}", count_text(count, "element"),
                          first, count_text(has, "element")));
}

}  // namespace detail

namespace {

constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();

std::string bytes_text(std::uint64_t bytes) {
  return bytes == kMax ? "more than 2^64 bytes" : count_text(bytes, "byte");
}

// "5 elements (20 bytes)"
std::string needs_text(const OperandUse& use) {
  return format_text("{} ({})", count_text(use.elements, "element"), bytes_text(use.needs()));
}

std::string holds_text(const OperandUse& use) {
  const std::uint64_t values = use.memory.bytes / bytes(use.type) * info(use.type).block_values;
  return format_text("{} ({})", count_text(values, "element"), bytes_text(use.memory.bytes));
}

std::string place_text(const OperandUse& use) {
  return format_text("{} at {:#x} ({})", use.name, use.memory.address, bytes_text(use.needs()));
}

[[noreturn]] void refuse(std::string_view kernel, const char* code, std::string message) {
  Error error(Stage::Launch, code, std::move(message));
  error.kernel = kernel;
  throw error.refresh();
}

void check_one(std::string_view kernel, const std::string& shape, const OperandUse& use) {
  if (usable(use)) return;
  const DeviceRange& memory = use.memory;
  if (!use.present) {
    refuse(kernel, "arguments",
           format_text("there is {}, but {} has no such operand; leave it empty, or set the "
                       "parameter that adds it",
                       use.name, shape));
  }
  if (!type_fits(memory.type, use.type)) {
    refuse(kernel, "operand-type",
           format_text("{} is memory of {}, but {} takes {}; pass memory of that type, or a "
                       "DeviceRange without one",
                       use.name, ptx::name(memory.type), shape, to_string(use.type)));
  }
  if (memory.address == 0) {
    refuse(kernel, "null-pointer",
           format_text("{} is a null pointer, but {} needs {}; pass device memory", use.name, shape,
                       needs_text(use)));
  }
  if (memory.bytes < use.needs()) {
    refuse(kernel, "buffer-size",
           format_text("{} holds {}, but {} needs {}; pass a larger buffer or a smaller shape",
                       use.name, holds_text(use), shape, needs_text(use)));
  }
  if (memory.address % info(use.type).alignment != 0) {
    refuse(kernel, "misaligned",
           format_text("{} is at {:#x}, which is not a multiple of its {}-byte elements; pass an "
                       "aligned address",
                       use.name, memory.address, info(use.type).alignment));
  }
  if (memory.address % use.alignment != 0) {
    refuse(kernel, "misaligned",
           format_text("{} is at {:#x}, but {} needs an alignment of {}; pass an aligned address, "
                       "or choose a kernel for a smaller alignment",
                       use.name, memory.address, shape, count_text(use.alignment, "byte")));
  }
  refuse(kernel, "buffer-size",
         format_text("{} at {:#x} would end past the last address: {} needs {}", use.name,
                     memory.address, shape, needs_text(use)));
}

void refuse_overlap(std::string_view kernel, const OperandUse& output, const OperandUse& other,
                    bool same) {
  const std::string_view out = output.name;
  const std::string_view in = other.name;
  refuse(kernel, "aliasing",
         format_text(
             "{} overlaps {}{}", place_text(output), place_text(other),
             same ? format_text("; {} may be {} itself, but not a shifted part of it", out, in)
             : other.written
                 ? format_text("; the kernel writes both: give {} separate memory", out)
                 : format_text("; the kernel reads {} while it writes {}: give {} separate memory",
                               in, out, out)));
}

}  // namespace

std::string_view to_string(ArgumentRole role) noexcept {
  constexpr std::string_view kNames[] = {"input",  "output", "in-out",  "workspace",
                                         "scalar", "shape",  "promise", "tensor map"};
  return kNames[static_cast<std::size_t>(role)];
}

void refuse_operands(std::string_view kernel, const std::string& shape,
                     std::span<const OperandUse> uses, bool (*same)(std::size_t, std::size_t)) {
  for (const OperandUse& use : uses) check_one(kernel, shape, use);
  for (std::size_t i = 0; i < uses.size(); ++i) {
    for (std::size_t j = i + 1; j < uses.size(); ++j) {
      if (may_be_together(uses[i], uses[j], same(i, j))) continue;
      const bool first_written = uses[i].written;
      refuse_overlap(kernel, uses[first_written ? i : j], uses[first_written ? j : i], same(i, j));
    }
  }
  refuse(kernel, "arguments", "the operands do not fit " + shape);
}

}  // namespace ptxgen::inline v0
