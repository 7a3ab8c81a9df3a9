// src/qa/playbook/probe.hpp - a driver table that counts objects and fails calls
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <string_view>

#include "ptxgen/driver/table.hpp"

namespace ptxgen::qa {

/// A kind of driver call that can be made to fail.
struct FaultSite {
  std::string_view name;    ///< "allocation"
  std::string_view doc;     ///< what fails
  driver::CUresult status;  ///< what the driver returns then
};
[[nodiscard]] std::span<const FaultSite> fault_sites() noexcept;
/// The site of that name, or null.
[[nodiscard]] const FaultSite* fault_site(std::string_view name) noexcept;

/// Passes every call to another driver and counts what the driver holds: contexts, modules, and
/// launches that no synchronisation has waited for. The first call of one fault site can be made to
/// fail; it is then not passed on. One at a time in a process, since functions of a table have no
/// argument for their owner.
class DriverProbe {
 public:
  /// Throws `Error` (Stage::Verify, "busy") while there is another one.
  explicit DriverProbe(const driver::Table& base);
  DriverProbe(const DriverProbe&) = delete;
  DriverProbe& operator=(const DriverProbe&) = delete;
  ~DriverProbe();

  [[nodiscard]] const driver::Table& table() const noexcept { return table_; }
  /// The next call of that site fails; null: none does.
  void fail_next(const FaultSite* site);
  /// Whether that call came.
  [[nodiscard]] bool failed() const;
  /// Objects that calls through the table have made and not released.
  [[nodiscard]] std::int64_t living(driver::Object object) const;
  [[nodiscard]] std::int64_t launches_pending() const;

  /// For the functions of the table: whether the call of that row is to fail, and its result.
  [[nodiscard]] bool fails(std::size_t row, driver::CUresult& status);
  void succeeded(std::size_t row);
  [[nodiscard]] const driver::Table& base() const noexcept { return base_; }

 private:
  const driver::Table& base_;
  driver::Table table_;
  mutable std::mutex mutex_;
  const FaultSite* armed_ = nullptr;
  bool failed_ = false;
  std::array<std::int64_t, 32> living_{};
  std::int64_t pending_ = 0;
};

}  // namespace ptxgen::qa
