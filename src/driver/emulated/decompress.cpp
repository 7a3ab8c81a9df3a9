// src/driver/emulated/decompress.cpp - LZ4 and zstd, from the system's libraries
#include "driver/emulated/decompress.hpp"

#include <algorithm>
#include <limits>

#include "ptxgen/support/error.hpp"
#include "support/count.hpp"
#include "support/dynamic_library.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::driver::emulated {
namespace {

// lz4.h and zstd.h; both libraries keep these for every version 1.
using Lz4DecompressSafe = int(const char* from, char* to, int from_bytes, int to_capacity);
using ZstdDecompress = std::size_t(void* to, std::size_t to_capacity, const void* from,
                                   std::size_t from_bytes);
using ZstdIsError = unsigned(std::size_t code);
using ZstdGetErrorName = const char*(std::size_t code);

struct Library {
  const char* file;
  const char* format;
  const char* package;
};
constexpr Library kLz4{"liblz4.so.1", "LZ4", "liblz4-1"};
constexpr Library kZstd{"libzstd.so.1", "zstd", "libzstd1"};

[[noreturn]] void missing(const Library& library, const std::string& reasons) {
  throw Error(Stage::Load, "missing-library",
              format_text("the PTX is compressed with {}, and {} was not found; install it "
                          "(Debian: {}) or build with nvcc --no-compress\n{}",
                          library.format, library.file, library.package, reasons));
}

DynamicLibrary open(const Library& library) {
  LibrarySearch search;
  search.stem = library.file;
  search.loader_names = {library.file};
  return DynamicLibrary::find(search);
}

[[noreturn]] void damaged(const Library& library, const std::string& what) {
  throw Error(Stage::Load, "bad-image",
              format_text("the compressed PTX ({}) is damaged: {}", library.format, what));
}

void check_size(const Library& library, std::uint64_t found, std::uint64_t expected) {
  if (found == expected) return;
  damaged(library, format_text("it decompresses to {} bytes, its header says {}", found, expected));
}

void unpack_lz4(std::span<const std::byte> packed, std::string& to) {
  const DynamicLibrary library = open(kLz4);
  Lz4DecompressSafe* decompress_safe = nullptr;
  if (!library || !library.resolve("LZ4_decompress_safe", decompress_safe)) {
    missing(kLz4, to_text(library.attempts()));
  }
  constexpr auto kMax = static_cast<std::size_t>(std::numeric_limits<int>::max());
  if (packed.size() > kMax) damaged(kLz4, "an LZ4 block has at most 2 GiB");
  const int written = decompress_safe(reinterpret_cast<const char*>(packed.data()), to.data(),
                                      static_cast<int>(packed.size()), static_cast<int>(to.size()));
  if (written < 0) {
    damaged(kLz4, format_text("the block does not decode at byte {} of {}", -(written + 1),
                              packed.size()));
  }
  check_size(kLz4, static_cast<std::uint64_t>(written), to.size());
}

void unpack_zstd(std::span<const std::byte> packed, std::string& to) {
  const DynamicLibrary library = open(kZstd);
  ZstdDecompress* decompress_all = nullptr;
  ZstdIsError* is_error = nullptr;
  ZstdGetErrorName* error_name = nullptr;
  if (!library || !library.resolve("ZSTD_decompress", decompress_all) ||
      !library.resolve("ZSTD_isError", is_error) ||
      !library.resolve("ZSTD_getErrorName", error_name)) {
    missing(kZstd, to_text(library.attempts()));
  }
  const std::size_t written = decompress_all(to.data(), to.size(), packed.data(), packed.size());
  if (is_error(written) != 0) damaged(kZstd, error_name(written));
  check_size(kZstd, written, to.size());
}

}  // namespace

std::uint64_t max_unpacked_bytes(Compression method, std::size_t packed_bytes) noexcept {
  constexpr std::uint64_t kLz4BytesPerByte = 255;
  constexpr std::uint64_t kZstdBlock = std::uint64_t{128} << 10;
  constexpr std::uint64_t kZstdSmallestBlock = 4;
  const std::uint64_t packed = std::min<std::uint64_t>(packed_bytes, kMaxUnpackedBytes);
  const std::uint64_t bound = method == Compression::Lz4
                                  ? packed * kLz4BytesPerByte
                                  : (packed / kZstdSmallestBlock + 1) * kZstdBlock;
  return std::min(bound, kMaxUnpackedBytes);
}

std::string decompress(Compression method, std::span<const std::byte> packed,
                       std::uint64_t unpacked_bytes) {
  if (unpacked_bytes > max_unpacked_bytes(method, packed.size())) {
    damaged(
        method == Compression::Lz4 ? kLz4 : kZstd,
        format_text("its header says that {} decompress to {} bytes; the format allows at most {}",
                    count_text(packed.size(), "byte"), unpacked_bytes,
                    max_unpacked_bytes(method, packed.size())));
  }
  std::string unpacked(static_cast<std::size_t>(unpacked_bytes), '\0');
  if (method == Compression::Lz4) {
    unpack_lz4(packed, unpacked);
  } else {
    unpack_zstd(packed, unpacked);
  }
  return unpacked;
}

}  // namespace ptxgen::inline v0::driver::emulated
