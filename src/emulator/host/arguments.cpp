// src/emulator/host/arguments.cpp - buffers and parameter block of a launch, its output files
#include "ptxgen/emulator/host/arguments.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>

#include "ptxgen/support/error.hpp"
#include "support/count.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::emulator {
namespace {

std::string buffer_name(std::size_t index, const Program::Kernel::Parameter& parameter) {
  return format_text("argument {} (parameter {})", index + 1, parameter.name);
}

// In pieces, to avoid a second copy of a large buffer.
void write_buffer(const Device& device, const Arguments::Buffer& buffer) {
  constexpr std::uint64_t kPiece = 1u << 20;
  std::vector<std::byte> piece(static_cast<std::size_t>(std::min(buffer.bytes, kPiece)));
  std::ofstream out(buffer.output, std::ios::binary | std::ios::trunc);
  out << buffer.output_header;
  for (std::uint64_t at = 0; out && at < buffer.bytes; at += kPiece) {
    const std::span part(piece.data(),
                         static_cast<std::size_t>(std::min(kPiece, buffer.bytes - at)));
    device.read(buffer.address + at, part);
    out.write(reinterpret_cast<const char*>(part.data()),
              static_cast<std::streamsize>(part.size()));
  }
  out.flush();
  if (!out) {
    Error error(Stage::Io, "write", "cannot write the file");
    error.file = buffer.output;
    throw error.refresh();
  }
}

}  // namespace

void check_arguments(const Program::Kernel& kernel, std::span<const ArgumentSpec> specs) {
  if (specs.size() != kernel.parameters.size()) {
    std::string names;
    for (const auto& parameter : kernel.parameters) {
      names += (names.empty() ? " (" : ", ") + parameter.name;
    }
    if (!names.empty()) names += ")";
    Error error(Stage::Launch, "argument",
                format_text("{} given, the kernel has {}{}; give one for each, in their order",
                            count_text(specs.size(), "argument"),
                            count_text(kernel.parameters.size(), "parameter"), names));
    error.kernel = kernel.name;
    throw error.refresh();
  }
  for (std::size_t i = 0; i < specs.size(); ++i) {
    try {
      check_argument(specs[i], kernel.parameters[i], i + 1);
    } catch (Error& error) {
      error.kernel = kernel.name;
      throw error.refresh();
    }
  }
}

Arguments::Arguments(Device& device, const Program::Kernel& kernel,
                     std::span<const ArgumentSpec> specs)
    : device_(&device), block_(kernel.parameter_bytes) {
  check_arguments(kernel, specs);
  try {
    for (std::size_t i = 0; i < specs.size(); ++i) {
      const ArgumentSpec& spec = specs[i];
      const Program::Kernel::Parameter& parameter = kernel.parameters[i];
      std::byte* place = block_.data() + parameter.offset;
      if (!spec.is_buffer()) {
        std::copy(spec.value.begin(), spec.value.end(), place);
        continue;
      }
      BufferContent content =
          buffer_content(spec, i + 1, parameter.name, device.gpu().memory_bytes);
      const std::uint64_t address = device.allocate(content.bytes, buffer_name(i, parameter));
      buffers_.push_back({i, address, content.bytes, spec.output, content.type,
                          std::move(content.shape), std::move(content.output_header)});
      if (!content.data.empty()) device.write(address, std::as_bytes(std::span(content.data)));
      if (spec.kind == ArgumentKind::Zero) device.fill(address, std::byte{0}, content.bytes);
      if (spec.is_readonly()) device.protect(address);
      for (unsigned b = 0; b < 8; ++b) place[b] = static_cast<std::byte>(address >> (8 * b));
    }
  } catch (...) {
    release();
    throw;
  }
}

Arguments::~Arguments() { release(); }

void Arguments::release() noexcept {
  for (const Buffer& buffer : buffers_) {
    try {
      device_->free(buffer.address);
    } catch (const Error&) {
      // It was already freed.
    }
  }
  buffers_.clear();
}

void Arguments::write_outputs() const {
  std::vector<Error> failures;
  for (const Buffer& buffer : buffers_) {
    if (buffer.output.empty()) continue;
    try {
      write_buffer(*device_, buffer);
    } catch (Error& error) {
      failures.push_back(std::move(error));
    }
  }
  if (failures.empty()) return;
  Error first = std::move(failures.front());
  first.causes.insert(first.causes.end(), std::make_move_iterator(failures.begin() + 1),
                      std::make_move_iterator(failures.end()));
  throw first.refresh();
}

}  // namespace ptxgen::inline v0::emulator
