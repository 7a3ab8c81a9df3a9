// src/driver/emulated/image.hpp - what bytes given to the driver as a module are
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "driver/emulated/decompress.hpp"
#include "ptxgen/driver/api.hpp"
#include "ptxgen/ptx/target.hpp"

namespace ptxgen::inline v0::driver::emulated {

/// One part of a fat binary. The layout is what nvcc 13.0 writes: a container header of 16 bytes
/// (magic 0xba55ed50, version 1, header size, 64-bit size of what follows), then parts, each with a
/// header (kind, header size, size in the file, size before padding if compressed, PTX version,
/// architecture, flags, size unpacked if compressed) and its bytes. Flags: 0x2000 an LZ4 block,
/// 0x8000 a zstd frame, 0x100000 and 0x200000 for `a` and `f` targets.
struct FatbinPart {
  enum class Kind : std::uint8_t { Ptx, Cubin, Other };
  Kind kind = Kind::Other;
  Compression compression = Compression::None;
  ptx::TargetName target;
  std::span<const std::byte> bytes;  ///< as stored, without padding if compressed
  std::uint64_t unpacked_bytes = 0;  ///< if compressed
};

/// The parts of a container. Throws `Error` (Stage::Load, code "bad-image") that says which part
/// does not fit where.
[[nodiscard]] std::vector<FatbinPart> fatbin_parts(std::span<const std::byte> container);

/// What a module image came to: the PTX to compile, or a code and why.
struct ModuleImage {
  CUresult result = CUDA_SUCCESS;
  std::string_view ptx;  ///< a view into the image or `unpacked`, without the zero byte at its end
  std::shared_ptr<const std::string> unpacked;  ///< the text, where the image has it compressed
  unsigned max_registers = 0;                   ///< of a linked image: CU_JIT_MAX_REGISTERS
  std::string why;
};

/// Finds the PTX that a GPU would be given: the text itself, what cuLinkComplete made here, or of a
/// fat binary the PTX part of the highest architecture that the GPU has, unpacked if it is
/// compressed. Touches nothing outside `bytes`.
///
/// CUDA_ERROR_NO_BINARY_FOR_GPU: a cubin; a fat binary whose PTX is for newer GPUs, or not there,
/// or compressed where the library that unpacks it is not installed. CUDA_ERROR_INVALID_IMAGE:
/// nothing of all that, or a damaged one.
[[nodiscard]] ModuleImage read_image(std::span<const std::byte> bytes, const ptx::Gpu& gpu);

/// The bytes of an image of which the caller gave the address only: as many as its header says, up
/// to the zero byte for text, and for the wrapper that nvcc puts into host objects (magic
/// 0x466243b1) those of the container it points to. Like every driver it must believe the image.
[[nodiscard]] std::span<const std::byte> image_at(const void* image);

/// What our cuLinkComplete returns in place of a cubin: 8 bytes of magic (0x7f "PTXLNK" and the
/// version 2), the size of the text and the register limit (0: none) as 64 bits each,
/// little-endian, the text, a zero byte.
[[nodiscard]] std::vector<std::byte> linked_image(std::string_view ptx, unsigned max_registers = 0);

/// Whether a GPU runs code of that target: no newer than the GPU; `a` only on just that
/// architecture, `f` only in its family.
[[nodiscard]] bool runs_on(ptx::TargetName target, const ptx::Gpu& gpu) noexcept;

/// The number that `.version` gives as 10 * major + minor; 0 if the text does not begin with one
/// (comments and blanks apart).
[[nodiscard]] int ptx_version(std::string_view ptx) noexcept;

}  // namespace ptxgen::inline v0::driver::emulated
