// tests/driver/fatbin_builder.hpp - fat binaries as nvcc 13.0 lays them out
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace ptxgen::test {

/// Builds a fat binary part by part. The layout was read off files that nvcc 13.0.88 wrote.
class FatbinBuilder {
 public:
  enum Kind : std::uint16_t { Ptx = 1, Cubin = 2 };
  static constexpr std::uint64_t kFlags = 0x11;  ///< 64 bits, Linux
  static constexpr std::uint64_t kZstd = 0x8000;
  static constexpr std::uint64_t kLz4 = 0x2000;
  static constexpr std::uint64_t kArchitecture = 0x100000;
  static constexpr std::uint64_t kFamily = 0x200000;

  FatbinBuilder& add(Kind kind, std::uint32_t sm, const std::string& content,
                     std::uint64_t flags = 0, std::uint64_t unpacked = 0) {
    const bool compressed = (flags & (kZstd | kLz4)) != 0;
    const std::size_t padded = (content.size() + 8) / 8 * 8;
    const std::size_t header = kind == Ptx ? 80 : 64;
    const std::size_t at = parts_.size();
    parts_.resize(at + header + padded);
    put<std::uint16_t>(at, kind);
    put<std::uint16_t>(at + 2, 0x101);
    put<std::uint32_t>(at + 4, static_cast<std::uint32_t>(header));
    put<std::uint64_t>(at + 8, padded);
    put<std::uint32_t>(at + 16, compressed ? static_cast<std::uint32_t>(content.size()) : 0);
    put<std::uint32_t>(at + 20, kind == Ptx ? 64 : 0);
    put<std::uint16_t>(at + 24, 0);
    put<std::uint16_t>(at + 26, 9);
    put<std::uint32_t>(at + 28, sm);
    put<std::uint64_t>(at + 40, kFlags | flags);
    put<std::uint64_t>(at + 56, unpacked);
    if (kind == Ptx) put<std::uint32_t>(at + 64, 72);
    std::memcpy(parts_.data() + at + header, content.data(), content.size());
    return *this;
  }

  [[nodiscard]] std::vector<std::byte> build() const {
    std::vector<std::byte> result(16);
    const std::uint32_t magic = 0xba55ed50;
    const std::uint16_t version = 1;
    const std::uint16_t header = 16;
    const std::uint64_t size = parts_.size();
    std::memcpy(result.data(), &magic, 4);
    std::memcpy(result.data() + 4, &version, 2);
    std::memcpy(result.data() + 6, &header, 2);
    std::memcpy(result.data() + 8, &size, 8);
    result.insert(result.end(), parts_.begin(), parts_.end());
    return result;
  }

 private:
  template <class T>
  void put(std::size_t at, T value) {
    std::memcpy(parts_.data() + at, &value, sizeof value);
  }

  std::vector<std::byte> parts_;
};

/// The first bytes of a cubin: an ELF header of machine 190.
inline std::string cubin_bytes() {
  std::string bytes(64, '\0');
  bytes.replace(0, 7,
                "\x7f"
                "ELF\x02\x01\x01");
  bytes[18] = static_cast<char>(190);
  return bytes;
}

}  // namespace ptxgen::test
