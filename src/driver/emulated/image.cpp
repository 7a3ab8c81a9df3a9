// src/driver/emulated/image.cpp - recognising PTX, fat binaries, cubins, linked PTX
#include "driver/emulated/image.hpp"
#include "driver/lto_ir.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "ptxgen/support/error.hpp"
#include "support/count.hpp"
#include "support/format.hpp"
#include "support/join.hpp"
#include "support/numbers.hpp"

namespace ptxgen::inline v0::driver::emulated {
namespace {

static_assert(std::endian::native == std::endian::little);

using Bytes = std::span<const std::byte>;
using Magic8 = std::array<unsigned char, 8>;

constexpr std::array<unsigned char, 4> kWrapperMagic{0xb1, 0x43, 0x62, 0x46};
constexpr std::array<unsigned char, 4> kElfMagic{0x7f, 'E', 'L', 'F'};
constexpr Magic8 kLinkedMagic{0x7f, 'P', 'T', 'X', 'L', 'N', 'K', 2};
constexpr std::size_t kLinkedHeader = 24;
constexpr std::size_t kWrapperBytes = 24;
/// The fields of an ELF file that are used.
constexpr std::size_t kElfHeader = 64;
constexpr std::uint16_t kElfMachineCuda = 190;

template <std::size_t N>
bool begins_with(Bytes bytes, const std::array<unsigned char, N>& magic) {
  return bytes.size() >= N && std::memcmp(bytes.data(), magic.data(), N) == 0;
}

/// The same for an unknown size: reads no further than the first difference.
template <std::size_t N>
bool begins_with(const unsigned char* bytes, const std::array<unsigned char, N>& magic) {
  for (std::size_t i = 0; i < N; ++i) {
    if (bytes[i] != magic[i]) return false;
  }
  return true;
}

template <class T>
T read(const void* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}
template <class T>
T read(Bytes bytes, std::size_t offset) {
  return read<T>(bytes.data() + offset);
}

/// The text after blanks and comments.
std::string_view skip_blanks(std::string_view text) {
  for (;;) {
    const std::size_t start = text.find_first_not_of(" \t\r\n\v\f");
    if (start == std::string_view::npos) return {};
    text.remove_prefix(start);
    std::size_t end = 0;
    if (text.starts_with("//")) {
      end = text.find('\n');
    } else if (text.starts_with("/*")) {
      end = text.find("*/", 2);
      if (end != std::string_view::npos) end += 2;
    } else {
      return text;
    }
    if (end == std::string_view::npos) return {};
    text.remove_prefix(end);
  }
}

/// The first bytes of an unknown image, for a message.
std::string beginning(Bytes bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const std::byte each : bytes.first(std::min<std::size_t>(bytes.size(), 16))) {
    const auto code = std::to_integer<unsigned>(each);
    if (code >= 0x20 && code < 0x7f && code != '\\') {
      text += static_cast<char>(code);
    } else {
      text += "\\x";
      text += kDigits[code / 16];
      text += kDigits[code % 16];
    }
  }
  return text;
}

ModuleImage refused(CUresult result, std::string why) {
  ModuleImage image;
  image.result = result;
  image.why = std::move(why);
  return image;
}

/// Uncompressed PTX.
ModuleImage plain(std::string_view ptx) {
  ModuleImage image;
  image.ptx = ptx;
  return image;
}

std::string_view text_of(Bytes bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return text.substr(0, text.find('\0'));
}

ModuleImage text_of_part(const FatbinPart& part) {
  if (part.compression == Compression::None) return plain(text_of(part.bytes));
  ModuleImage image;
  image.unpacked = std::make_shared<const std::string>(
      decompress(part.compression, part.bytes, part.unpacked_bytes));
  image.ptx = text_of(std::as_bytes(std::span(*image.unpacked)));
  return image;
}

ModuleImage choose(Bytes container, const ptx::Gpu& gpu) {
  const FatbinPart* best = nullptr;
  std::vector<std::string> all;
  const std::vector<FatbinPart> parts = fatbin_parts(container);
  for (const FatbinPart& part : parts) {
    if (part.kind == FatbinPart::Kind::Other) continue;
    const bool text = part.kind == FatbinPart::Kind::Ptx;
    all.push_back(format_text("{} for {}", text ? "PTX" : "a cubin", ptx::name(part.target)));
    if (!text || !runs_on(part.target, gpu)) continue;
    if (best == nullptr || part.target.sm > best->target.sm ||
        (part.target.sm == best->target.sm && best->target.variant == ptx::Variant::None)) {
      best = &part;
    }
  }
  if (best != nullptr) return text_of_part(*best);
  const std::string gpu_text = format_text("'{}' ({}, emulated)", gpu.name, gpu.target);
  std::string why = format_text("the fat binary has nothing that can be loaded on {}; it has {}",
                                gpu_text, all.empty() ? "no code at all" : join_text(all));
  why +=
      "; the emulated driver loads PTX only: add -gencode arch=compute_XX,code=compute_XX for this "
      "GPU or an older one";
  return refused(CUDA_ERROR_NO_BINARY_FOR_GPU, std::move(why));
}

ModuleImage read_elf(Bytes bytes) {
  if (bytes.size() < kElfHeader || read<std::uint16_t>(bytes, 18) != kElfMachineCuda) {
    return refused(
        CUDA_ERROR_INVALID_IMAGE,
        "the image is an ELF file, but not a cubin; a module is PTX text or a fat binary");
  }
  return refused(CUDA_ERROR_NO_BINARY_FOR_GPU,
                 "the image is a cubin, machine code that the emulated driver cannot run; load PTX "
                 "(nvcc -ptx, nvrtcGetPTX, or a fat binary with PTX). For a program that takes "
                 "cubins from NVRTC start it with LD_AUDIT=.../ptxgen/libptxgen_toolkit_ptx.so");
}

ModuleImage read_linked(Bytes bytes) {
  const bool complete = bytes.size() >= kLinkedHeader &&
                        read<std::uint64_t>(bytes, 8) <= bytes.size() - kLinkedHeader;
  if (!complete) return refused(CUDA_ERROR_INVALID_IMAGE, "the linked image is truncated");
  const auto size = static_cast<std::size_t>(read<std::uint64_t>(bytes, 8));
  ModuleImage found;
  found.ptx = text_of(bytes.subspan(kLinkedHeader, size));
  found.max_registers = static_cast<unsigned>(read<std::uint64_t>(bytes, 16));
  return found;
}

ModuleImage read_text(Bytes bytes) {
  const std::string_view text = text_of(bytes);
  const std::string_view first = skip_blanks(text);
  if (first.starts_with('.')) return plain(text);
  if (bytes.empty() || text.empty()) {
    return refused(CUDA_ERROR_INVALID_IMAGE, "the image is empty");
  }
  if (is_lto_ir(text)) {
    return refused(CUDA_ERROR_INVALID_IMAGE,
                   "the image is LTO IR; link it with nvJitLink, or compile to PTX, without -dlto");
  }
  return refused(CUDA_ERROR_INVALID_IMAGE,
                 format_text("the image is neither PTX, which begins with .version, nor a fat "
                             "binary, nor a cubin; it begins with '{}'",
                             beginning(bytes)));
}

constexpr std::array<unsigned char, 4> kFatbinMagic{0x50, 0xed, 0x55, 0xba};
constexpr std::size_t kFatbinHeader = 16;
constexpr std::size_t kPartHeader = 64;
constexpr std::uint64_t kFlagLz4 = 0x2000;
constexpr std::uint64_t kFlagZstd = 0x8000;
constexpr std::uint64_t kFlagArchitecture = 0x100000;
constexpr std::uint64_t kFlagFamily = 0x200000;

[[noreturn]] void damaged(std::size_t offset, const std::string& what) {
  throw Error(Stage::Load, "bad-image",
              format_text("the fat binary is damaged at byte {}: {}", offset, what));
}

FatbinPart part_at(Bytes bytes, std::size_t offset, std::uint64_t& size) {
  const std::size_t left = bytes.size() - offset;
  if (left < kPartHeader) {
    damaged(offset, format_text("a part's header needs 64 bytes, {} are left", left));
  }
  const auto kind = read<std::uint16_t>(bytes, offset);
  const std::uint64_t header = read<std::uint32_t>(bytes, offset + 4);
  const auto stored = read<std::uint64_t>(bytes, offset + 8);
  const auto packed = read<std::uint32_t>(bytes, offset + 16);
  const auto architecture = read<std::uint32_t>(bytes, offset + 28);
  const auto flags = read<std::uint64_t>(bytes, offset + 40);
  const auto unpacked = read<std::uint64_t>(bytes, offset + 56);
  if (header < kPartHeader || header > left || stored > left - header) {
    damaged(offset, format_text("the part claims {} bytes of header and {} of content, {} are left",
                                header, stored, left));
  }
  FatbinPart part;
  if (kind == 1) part.kind = FatbinPart::Kind::Ptx;
  if (kind == 2) part.kind = FatbinPart::Kind::Cubin;
  if ((flags & kFlagLz4) != 0) part.compression = Compression::Lz4;
  if ((flags & kFlagZstd) != 0) part.compression = Compression::Zstd;
  if (packed > stored) {
    damaged(offset,
            format_text("the part claims {} compressed bytes in {} of content", packed, stored));
  }
  part.target.sm = static_cast<std::uint16_t>(std::min<std::uint32_t>(architecture, 0xffff));
  if ((flags & kFlagArchitecture) != 0) part.target.variant = ptx::Variant::Architecture;
  if ((flags & kFlagFamily) != 0) part.target.variant = ptx::Variant::Family;
  part.bytes =
      bytes.subspan(offset + static_cast<std::size_t>(header), static_cast<std::size_t>(stored));
  if (part.compression != Compression::None) {
    if (packed != 0) part.bytes = part.bytes.first(packed);
    part.unpacked_bytes = unpacked;
  }
  size = header + stored;
  return part;
}

}  // namespace

std::vector<FatbinPart> fatbin_parts(Bytes container) {
  if (container.size() < kFatbinHeader || !begins_with(container, kFatbinMagic)) {
    damaged(0, "there is no container header of 16 bytes");
  }
  const std::size_t header = read<std::uint16_t>(container, 6);
  const auto content = read<std::uint64_t>(container, 8);
  if (header < kFatbinHeader || header > container.size() || content > container.size() - header) {
    damaged(0,
            format_text("the container claims {} of header and {} of content, it has {} in total",
                        count_text(header, "byte"), content, container.size()));
  }
  const Bytes bytes = container.first(header + static_cast<std::size_t>(content));
  std::vector<FatbinPart> parts;
  for (std::size_t offset = header; offset < bytes.size();) {
    std::uint64_t size = 0;
    parts.push_back(part_at(bytes, offset, size));
    offset += static_cast<std::size_t>(size);
  }
  return parts;
}

ModuleImage read_image(Bytes bytes, const ptx::Gpu& gpu) {
  try {
    if (begins_with(bytes, kFatbinMagic)) return choose(bytes, gpu);
    if (begins_with(bytes, kElfMagic)) return read_elf(bytes);
    if (begins_with(bytes, kLinkedMagic)) return read_linked(bytes);
    return read_text(bytes);
  } catch (const Error& error) {
    return refused(
        error.code == "missing-library" ? CUDA_ERROR_NO_BINARY_FOR_GPU : CUDA_ERROR_INVALID_IMAGE,
        error.message);
  }
}

Bytes image_at(const void* image) {
  const auto* bytes = static_cast<const unsigned char*>(image);
  if (begins_with(bytes, kWrapperMagic)) {
    // Magic, version, address of the container, and a field that only nvlink uses.
    static_assert(kWrapperBytes == 8 + 2 * sizeof(void*));
    const auto* container = read<const unsigned char*>(bytes + 8);
    if (container == nullptr || !begins_with(container, kFatbinMagic)) return {};
    bytes = container;
  }
  std::size_t size = 0;
  if (begins_with(bytes, kFatbinMagic)) {
    size =
        read<std::uint16_t>(bytes + 6) + static_cast<std::size_t>(read<std::uint64_t>(bytes + 8));
  } else if (begins_with(bytes, kElfMagic)) {
    size = kElfHeader;
  } else if (begins_with(bytes, kLinkedMagic)) {
    size = kLinkedHeader + static_cast<std::size_t>(read<std::uint64_t>(bytes + 8));
  } else {
    size = std::strlen(reinterpret_cast<const char*>(bytes));
  }
  return std::as_bytes(std::span(bytes, size));
}

std::vector<std::byte> linked_image(std::string_view ptx, unsigned max_registers) {
  std::vector<std::byte> image(kLinkedHeader + ptx.size() + 1);
  const std::uint64_t size = ptx.size();
  std::memcpy(image.data(), kLinkedMagic.data(), kLinkedMagic.size());
  const std::uint64_t registers = max_registers;
  std::memcpy(image.data() + 8, &size, sizeof size);
  std::memcpy(image.data() + 16, &registers, sizeof registers);
  std::memcpy(image.data() + kLinkedHeader, ptx.data(), ptx.size());
  return image;
}

bool runs_on(ptx::TargetName target, const ptx::Gpu& gpu) noexcept {
  ptx::TargetName own;
  if (!ptx::parse_target_name(gpu.target, own)) return false;
  switch (target.variant) {
    case ptx::Variant::None:
      return target.sm <= own.sm;
    case ptx::Variant::Architecture:
      return target.sm == own.sm;
    case ptx::Variant::Family:
      return target.sm / 10 == own.sm / 10 && target.sm <= own.sm;
  }
  return false;
}

int ptx_version(std::string_view ptx) noexcept {
  constexpr std::string_view kDirective = ".version";
  std::string_view text = skip_blanks(ptx);
  if (!text.starts_with(kDirective)) return 0;
  text = skip_blanks(text.substr(kDirective.size()));
  const int major = take_number<unsigned char>(text).value_or(0);
  if (!text.starts_with('.')) return 0;
  text.remove_prefix(1);
  return 10 * major + take_number<unsigned char>(text).value_or(0);
}

}  // namespace ptxgen::inline v0::driver::emulated
