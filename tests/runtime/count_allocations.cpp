// tests/runtime/count_allocations.cpp - operator new that counts
#include "runtime/count_allocations.hpp"

#include <cstdlib>
#include <new>

// In a file of its own: inlined into code that calls them, g++ 12 takes the pair for mismatched.

namespace {
thread_local std::uint64_t calls = 0, asked = 0;
}  // namespace

std::uint64_t ptxgen::test::allocations() noexcept { return calls; }
std::uint64_t ptxgen::test::allocated_bytes() noexcept { return asked; }

#if !defined(PTXGEN_HAS_OTHER_NEW)
void* operator new(std::size_t bytes) {
  ++calls;
  asked += bytes;
  if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
#endif
