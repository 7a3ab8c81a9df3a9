// src/runtime/cache/cache_key.hpp - key of a compiled kernel on disk
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace ptxgen::inline v0 {

// type, field, a non-default value for tests, meaning. Everything that can change the image, and
// nothing else: no device number, pointer, time, path, host or environment.
#define PTXGEN_DISK_KEY_FIELDS(X)                                                              \
  X(std::string_view, ptx, ".version 8.0", "every byte of the text")                           \
  X(std::string_view, target, "sm_90a", "target of the image; empty: that of the PTX")         \
  X(std::uint64_t, optimization, 1, "0 to 3; a level that was not asked for is 3")             \
  X(std::uint64_t, max_registers, 64, "per thread, 0: no limit")                               \
  X(std::uint64_t, line_info, 1, "1: `.loc` lines are kept")                                   \
  X(std::uint64_t, debug_info, 1, "1: for a debugger")                                         \
  X(std::string_view, generator, "ptxas", "what makes the image; empty: the PTX is the image") \
  X(std::string_view, generator_version, "13.0", "its version, or the driver's if it is that")

/// The key of the disk layer. Options are normalised: equivalent settings must be equal here.
struct DiskKey {
#define PTXGEN_DISK_KEY_MEMBER(type, field, other, doc) type field{};
  PTXGEN_DISK_KEY_FIELDS(PTXGEN_DISK_KEY_MEMBER)
#undef PTXGEN_DISK_KEY_MEMBER
};

/// The key as bytes: the format's version, then each field with its name and size, so that no two
/// keys share their bytes. A generator of unknown version has its own key space, distinct from that
/// of an empty version.
[[nodiscard]] std::vector<std::byte> key_bytes(const DiskKey& key);

}  // namespace ptxgen::inline v0
