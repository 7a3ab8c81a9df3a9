// src/support/nvtx.hpp - ranges shown by an attached profiler
#pragma once

#include <string>

#include "ptxgen/support/log.hpp"

namespace ptxgen::inline v0 {

/// Where a profiler, or the library that leads to one, may be found.
struct NvtxSearch {
  std::string injection;   ///< a library with InitializeInjectionNvtx2; empty: none
  std::string library;     ///< libnvToolsExt.so.1 or its folder; empty: none named
  bool in_process = true;  ///< also a libnvToolsExt.so.1 that is loaded already
  Log log;                 ///< receives what was named and does not work
};

/// Push and pop of one profiler connection. Plain data; calls from any thread.
///
/// The connection is one for the process and stays for good: a profiler keeps the addresses of the
/// table it has filled, and the protocol (NVTX 3: GetExportTable has no argument for an owner)
/// leaves no way to have several.
class Nvtx {
 public:
  /// Empty: no profiler.
  Nvtx() noexcept = default;
  /// The process's connection, made now if it is not there and something leads to one.
  [[nodiscard]] static Nvtx connect(const NvtxSearch& search);

  [[nodiscard]] explicit operator bool() const noexcept { return table_ != nullptr; }
  /// Opens a range named `name` (terminated) in this thread; ranges of a thread nest.
  void push(const char* name) const noexcept;
  void pop() const noexcept;

  struct Table;

 private:
  const Table* table_ = nullptr;
};

}  // namespace ptxgen::inline v0
