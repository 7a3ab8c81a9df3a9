// src/support/process_ids.hpp - ids of this process and thread
#pragma once

#include <cstdint>

namespace ptxgen::inline v0 {

/// The operating system's numbers, the same that debuggers and profilers show.
[[nodiscard]] std::uint64_t process_id() noexcept;
[[nodiscard]] std::uint64_t thread_id() noexcept;

}  // namespace ptxgen::inline v0
