// src/runtime/device/driver_error.hpp - failed driver calls as Error
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "ptxgen/driver/table.hpp"
#include "ptxgen/support/error.hpp"

namespace ptxgen::inline v0 {

/// A member of the table: `&driver::Table::mem_alloc`.
template <class... P>
using TableMember = driver::CUresult (*driver::Table::*)(P...);

/// The row of functions.def whose entry is at `offset` bytes in a table.
[[nodiscard]] const driver::FunctionInfo& function_at(std::size_t offset) noexcept;

/// The row of a member of the table.
template <class... P>
[[nodiscard]] const driver::FunctionInfo& row_of(TableMember<P...> member) noexcept {
  static constexpr driver::Table kBlank{};
  return function_at(static_cast<std::size_t>(reinterpret_cast<const char*>(&(kBlank.*member)) -
                                              reinterpret_cast<const char*>(&kBlank)));
}

/// A failed driver call: the row of its function and the result.
struct FailedCall {
  const driver::FunctionInfo* function = nullptr;
  driver::CUresult result = driver::CUDA_SUCCESS;

  [[nodiscard]] explicit operator bool() const noexcept { return result != driver::CUDA_SUCCESS; }
  /// "cuMemAlloc_v2: CUDA_ERROR_INVALID_VALUE (1): invalid argument".
  [[nodiscard]] std::string text() const;
};

/// "driver-call" with the call's text, followed by `doing` ("while loading x").
[[nodiscard]] Error driver_error(Stage stage, const FailedCall& failed,
                                 std::string_view doing = {});

/// Whether the driver returns this result for all later calls of the context.
[[nodiscard]] bool is_sticky(driver::CUresult result) noexcept;

/// Calls without a context, for opening devices. Throws `driver_error`.
template <class... P, class... A>
void must(const driver::Table& table, Stage stage, TableMember<P...> member, A... arguments) {
  const driver::CUresult result = (table.*member)(arguments...);
  if (result != driver::CUDA_SUCCESS) throw driver_error(stage, {&row_of(member), result});
}

}  // namespace ptxgen::inline v0
