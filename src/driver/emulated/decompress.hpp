// src/driver/emulated/decompress.hpp - LZ4 and zstd, from the system's libraries
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace ptxgen::inline v0::driver::emulated {

enum class Compression : std::uint8_t { None, Lz4, Zstd };

/// Beyond it a size in a header is taken for damage. PTX of a few MiB is large.
inline constexpr std::uint64_t kMaxUnpackedBytes = std::uint64_t{1} << 30;

/// The bytes that an LZ4 block or a zstd frame holds, `unpacked_bytes` of them. The libraries are
/// opened at the first use (liblz4.so.1, libzstd.so.1), so that nothing needs them to build or to
/// load other images. Throws `Error` (Stage::Load): code "missing-library" with the place to get it
/// from, code "bad-image" for damaged data or another size.
[[nodiscard]] std::string decompress(Compression method, std::span<const std::byte> packed,
                                     std::uint64_t unpacked_bytes);

}  // namespace ptxgen::inline v0::driver::emulated
