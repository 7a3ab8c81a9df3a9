// src/cli/output/ptx_hash.cpp - a hash to compare the texts of two runs
#include "cli/output/ptx_hash.hpp"

#include <cstdint>

#include "support/format.hpp"

namespace ptxgen::cli {

std::string hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return format_text("fnv1a64:{:016x}", hash);
}

}  // namespace ptxgen::cli
