// src/driver/emulated/decompress.hpp - LZ4 and zstd, from the system's libraries
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace ptxgen::inline v0::driver::emulated {

enum class Compression : std::uint8_t { None, Lz4, Zstd };

/// Larger sizes in a header are rejected. PTX of a few MiB is large.
inline constexpr std::uint64_t kMaxUnpackedBytes = std::uint64_t{1} << 30;

/// Maximum decompressed size of `packed_bytes`, at most `kMaxUnpackedBytes`; nothing is allocated
/// for a larger size in a header. LZ4 (block format): a byte extends a match by at most 255. zstd
/// (RFC 8878, section 3.1.1.2): a block has a header of 3 bytes, at least one byte of content, and
/// holds at most 128 KiB.
[[nodiscard]] std::uint64_t max_unpacked_bytes(Compression method,
                                               std::size_t packed_bytes) noexcept;

/// Decompresses an LZ4 block or a zstd frame to `unpacked_bytes` bytes. The libraries (liblz4.so.1,
/// libzstd.so.1) are opened at the first use; building and loading other images do not need them.
/// Throws `Error` (Stage::Load): "missing-library" naming the package, "bad-image" for damaged data
/// or another size.
[[nodiscard]] std::string decompress(Compression method, std::span<const std::byte> packed,
                                     std::uint64_t unpacked_bytes);

}  // namespace ptxgen::inline v0::driver::emulated
