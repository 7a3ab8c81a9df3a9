// src/runtime/launch/cold_rounds.hpp - single launches with cold caches, beside copies
#pragma once

#include <cstdint>
#include <functional>

#include "ptxgen/kernels/elementwise/read_stream.hpp"
#include "ptxgen/runtime/launch/launcher.hpp"

namespace ptxgen::inline v0 {

/// Reads all of a buffer: for the sum of its words, or to replace what the caches hold.
class BufferRead {
 public:
  /// `bytes`: a multiple of 16.
  BufferRead(const Launcher& launcher, const Context& context, std::uint64_t bytes);
  void queue(const Buffer<b8>& from, const Stream& stream) const;
  /// Modulo 2^32; waits for the stream.
  [[nodiscard]] std::uint32_t sum(const Buffer<b8>& from, const Stream& stream) const;

 private:
  const Launcher& launcher_;
  ReadStream spec_;
  LoadedKernel<Ptr<b8>, Ptr<u32>, u64> kernel_;
  Buffer<u32> sums_;
};

/// Times launches one by one. Before each, other memory is read: the caches hold that then, and the
/// device is busy while the host queues launch and events.
class ColdRounds {
 public:
  /// `moved`: bytes that a launch reads and writes. Copies move as many. `lead_bytes`: see
  /// BenchmarkOptions. Throws what allocating and loading throw.
  ColdRounds(const Launcher& launcher, const Context& context, std::uint64_t moved,
             std::uint64_t lead_bytes);

  /// Microseconds of what `launch` queues; waits for it.
  [[nodiscard]] double time(const std::function<void()>& launch, const Stream& stream) const;
  /// Of a copy. Throws `Error` (Stage::Launch, "copy") if it did not copy.
  [[nodiscard]] double copy(const Stream& stream);
  [[nodiscard]] std::uint64_t lead_bytes() const noexcept { return lead_.bytes(); }
  /// Read and written by a copy.
  [[nodiscard]] std::uint64_t copy_bytes() const noexcept { return 2 * to_.bytes(); }

 private:
  Event begin_, end_;
  Buffer<b8> lead_, from_, to_;
  BufferRead lead_read_, copy_read_;
};

}  // namespace ptxgen::inline v0
