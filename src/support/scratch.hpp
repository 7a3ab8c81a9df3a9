// src/support/scratch.hpp - temporary memory of one function call
#pragma once

#include <cstddef>
#include <memory_resource>
#include <vector>

namespace ptxgen::inline v0 {

namespace detail {
struct FirstBytes {
  alignas(std::max_align_t) std::byte first[4096];
};
}  // namespace detail

/// Gives everything back at once, when it goes. An analysis of a small function takes dozens of
/// short tables, and asking the heap for each would cost more than to fill it; here the first few
/// kilobytes are on the stack. Tables that grow abandon their old storage: reserve them.
class Scratch : private detail::FirstBytes, public std::pmr::monotonic_buffer_resource {
 public:
  Scratch() : monotonic_buffer_resource(first, sizeof first) {}
};

/// A table in such memory: `ScratchVector<std::uint32_t> depth(nodes, 0, &scratch)`.
template <class T>
using ScratchVector = std::pmr::vector<T>;

}  // namespace ptxgen::inline v0
