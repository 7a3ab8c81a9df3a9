// src/runtime/recording/outputs.hpp - hashes of what frames leave
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ptxgen/runtime/recording/recording.hpp"
#include "support/hash.hpp"

namespace ptxgen::inline v0 {

/// Bytes of all outputs after a frame.
[[nodiscard]] inline std::uint64_t output_bytes(const Recording& recording) {
  std::uint64_t bytes = 0;
  for (const RecordedBuffer& buffer : recording.buffers) bytes += buffer.output ? buffer.bytes : 0;
  return bytes;
}

[[nodiscard]] inline std::string hash_text(std::span<const std::byte> bytes) {
  return to_hex(hash128(bytes));
}

/// `Recording::hash`.
[[nodiscard]] inline std::string hash_of(std::span<const std::string> frame_hashes) {
  std::string all;
  for (const std::string& hash : frame_hashes) all += hash;
  return to_hex(hash128(std::string_view(all)));
}

}  // namespace ptxgen::inline v0
