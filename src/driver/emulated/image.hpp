// src/driver/emulated/image.hpp - kinds of module images
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

/// The PTX of a module image, or a code and the reason.
struct ModuleImage {
  CUresult result = CUDA_SUCCESS;
  std::string_view ptx;  ///< a view into the image or `unpacked`, without the final zero byte
  std::shared_ptr<const std::string> unpacked;  ///< the text, if the image has it compressed
  unsigned max_registers = 0;                   ///< of a linked image: CU_JIT_MAX_REGISTERS
  std::string why;
};

/// Finds the PTX for a GPU: the text itself, an image of cuLinkComplete, or the PTX part of a fat
/// binary with the highest architecture that the GPU supports, decompressed. Reads nothing outside
/// of `bytes`.
///
/// CUDA_ERROR_NO_BINARY_FOR_GPU: a cubin; a fat binary without PTX, with PTX for newer GPUs only,
/// or compressed by a method whose library is not installed. CUDA_ERROR_INVALID_IMAGE: an unknown
/// or damaged image.
[[nodiscard]] ModuleImage read_image(std::span<const std::byte> bytes, const ptx::Gpu& gpu);

/// The bytes of an image that is given by its address only: the size in its header, up to the zero
/// byte for text, and for the wrapper that nvcc puts into host objects (magic 0x466243b1) the
/// container it points to. As in every driver, the header is trusted.
[[nodiscard]] std::span<const std::byte> image_at(const void* image);

/// The image that cuLinkComplete returns instead of a cubin: 8 bytes of magic (0x7f "PTXLNK" and
/// the version 2), the size of the text and the register limit (0: none) as 64 bits each,
/// little-endian, the text, a zero byte.
[[nodiscard]] std::vector<std::byte> linked_image(std::string_view ptx, unsigned max_registers = 0);

/// Whether a GPU runs code of that target: no newer than the GPU; `a` only on just that
/// architecture, `f` only in its family.
[[nodiscard]] bool runs_on(ptx::TargetName target, const ptx::Gpu& gpu) noexcept;

/// The number that `.version` gives as 10 * major + minor; 0 if the text does not begin with one
/// (comments and blanks apart).
[[nodiscard]] int ptx_version(std::string_view ptx) noexcept;

}  // namespace ptxgen::inline v0::driver::emulated
