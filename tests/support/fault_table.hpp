// tests/support/fault_table.hpp - a driver table that counts, fails and watches
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "ptxgen/driver/table.hpp"

namespace ptxgen::test {

/// Passes every call on to another table, counts the calls and the objects that they make and let
/// go of, and fails the one call it was told to, without passing it on. One at a time in a process:
/// functions of a table have no place for a pointer of ours. Calls may come from several threads.
class FaultTable {
 public:
  explicit FaultTable(const driver::Table& base);
  FaultTable(const FaultTable&) = delete;
  FaultTable& operator=(const FaultTable&) = delete;
  ~FaultTable();

  [[nodiscard]] const driver::Table& table() const noexcept { return table_; }

  /// Counting starts anew; call number `nth`, 1 the first, returns `code`. 0: none does.
  void fail(std::uint64_t nth, driver::CUresult code);
  [[nodiscard]] std::uint64_t calls() const;
  /// The rows of the calls since then, in order.
  [[nodiscard]] std::vector<const driver::FunctionInfo*> rows() const;
  /// The row of the call that was failed, or null.
  [[nodiscard]] const driver::FunctionInfo* failed() const;

  /// "2 of DeviceMemory, 1 of Stream": what has been made and not let go of; empty: nothing.
  [[nodiscard]] std::string leaked() const;

 private:
  driver::Table table_;
};

}  // namespace ptxgen::test
