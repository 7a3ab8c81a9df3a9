// ptxgen/kernels/host.hpp - described kernels on the host
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

#include "ptxgen/kernels/description.hpp"

namespace ptxgen::inline v0 {

struct HostVectors;  // src/kernels/host/vectors.hpp: functions compiled for one instruction set

/// An instruction set that this build has vector functions for.
struct HostTarget {
  std::string_view name;   ///< "avx512", "avx2", "sse4", "neon", "portable"
  bool supported = false;  ///< by this processor
  const HostVectors* vectors = nullptr;
};

/// All of them, widest first; "portable", which every processor supports, last. None in a build
/// without Highway.
[[nodiscard]] std::span<const HostTarget> host_targets() noexcept;

/// Where a kernel's host function finds its operands, and what it computes with. A host address is
/// a device address plus a constant.
///
/// Threads: const members from any thread.
class HostRun {
 public:
  /// `vectors`: of a supported `HostTarget`, or null: the reference serves every kernel. `threads`:
  /// 0 for one for each core.
  HostRun(std::uint64_t shift, const HostVectors* vectors, unsigned threads = 0) noexcept;

  /// The elements of an operand; null for one that is not there.
  template <class T>
  [[nodiscard]] T* at(const DeviceRange& memory) const noexcept {
    return memory.address == 0 ? nullptr : reinterpret_cast<T*>(memory.address + shift_);
  }
  [[nodiscard]] const HostVectors* vectors() const noexcept { return vectors_; }
  [[nodiscard]] unsigned threads() const noexcept { return threads_; }

  /// Calls `work(begin, end)` for parts of [0, items) that cover it, concurrently if it pays: an
  /// item reads and writes about `bytes`. Parts begin at multiples of `step`. What is computed for
  /// an item must not depend on the parts. Throws the first exception of `work`.
  template <class F>
  void for_parts(std::uint64_t items, std::uint64_t bytes, std::uint64_t step,
                 const F& work) const {
    run_parts(items, bytes, step, &work,
              [](const void* of, std::uint64_t begin, std::uint64_t end) {
                (*static_cast<const F*>(of))(begin, end);
              });
  }

 private:
  using Part = void (*)(const void* work, std::uint64_t begin, std::uint64_t end);
  void run_parts(std::uint64_t items, std::uint64_t bytes, std::uint64_t step, const void* work,
                 Part call) const;

  std::uint64_t shift_;
  const HostVectors* vectors_;
  unsigned threads_;
};

/// Computes the kernel on the host: by its host function if it has one and `run` has vectors, else
/// by its fp64 reference, each result rounded once to its type. An element that a kernel reads and
/// leaves keeps its bits. The operands are checked (`check_of`).
void run_on_host(const KernelDescription& kernel, const void* spec, const void* operands,
                 const HostRun& run);

}  // namespace ptxgen::inline v0
