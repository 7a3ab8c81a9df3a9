// src/check/shared_race/forms.hpp - addresses and conditions, thread by thread
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "check/shared_race/accesses.hpp"
#include "ptxgen/analysis/affine.hpp"

namespace ptxgen::inline v0::gates {

/// Some symbols of an affine form, multiplied; kNone fills up.
using SymbolKey = std::array<std::uint32_t, 3>;

/// A form of which everything is worked out that the number of a thread decides:
/// `values[thread]` + the sum of coefficient * key.
struct ThreadForm {
  std::vector<std::int64_t> values;
  std::vector<std::pair<SymbolKey, std::int64_t>> rest;  ///< by key
  std::uint32_t variable = ptx::kNone;  ///< the shared variable whose address is a part, if one is
  bool elsewhere = false;               ///< a generic address of memory that is not shared
  bool known = false;                   ///< otherwise nothing else here means anything
};

/// `values[thread] + coefficient * key` stands in a relation to 0.
struct ThreadCondition {
  std::vector<std::int64_t> values;
  SymbolKey key{ptx::kNone, ptx::kNone, ptx::kNone};
  std::int64_t coefficient = 0;
  ptx::Modifier comparison = ptx::Modifier::none;  ///< lt le eq ne
  bool holds = true;                               ///< or does not
};

/// What is known of one access, for all threads of a block.
struct AccessForm {
  ThreadForm address;
  std::vector<bool> may;  ///< by thread: conditions on its number alone let it execute
  std::vector<ThreadCondition> conditions;  ///< those that need a symbol as well
};

/// Works forms out for blocks of one shape. Refers to its arguments.
class ThreadForms {
 public:
  ThreadForms(analysis::Facts& facts, const analysis::Affine& affine,
              std::array<std::uint32_t, 3> shape);

  /// From now on the symbol is that number. Before anything is asked.
  void fix(std::uint32_t symbol, std::uint64_t value) {
    columns_[symbol] = std::vector<std::int64_t>(threads_, static_cast<std::int64_t>(value));
  }
  [[nodiscard]] std::uint32_t threads() const noexcept { return threads_; }
  /// A form's values by thread, if the number of the thread decides them.
  [[nodiscard]] std::optional<std::vector<std::int64_t>> values(const analysis::AffineForm& form) {
    return column(form);
  }
  /// The address, guard, and conditions of branches that decide about an access.
  [[nodiscard]] AccessForm of(const SharedAccess& access);
  [[nodiscard]] const analysis::AffineSymbol& symbol(std::uint32_t symbol) const noexcept {
    return affine_.symbols()[symbol];
  }

 private:
  using Column = std::vector<std::int64_t>;
  /// A symbol's values, or nullptr if the number of the thread does not decide them.
  const Column* column(std::uint32_t symbol);
  /// A form's values, if it has no rest.
  std::optional<Column> column(const analysis::AffineForm& form);
  [[nodiscard]] Column operation(const analysis::AffineSymbol& symbol,
                                 const std::array<Column, 3>& operands) const;
  [[nodiscard]] ThreadForm worked_out(const analysis::AffineForm& form);
  void add_conditions(const SharedAccess& access, AccessForm& made);
  void add_condition(const analysis::AffineForm& form, bool holds, AccessForm& made, int depth);
  void add_comparison(const analysis::AffineSymbol& compare, bool holds, AccessForm& made);
  /// Phi symbols replaced by what they stand for.
  [[nodiscard]] analysis::AffineForm expanded(const analysis::AffineForm& form) const;
  /// Symbols of variables that overlap have one number.
  [[nodiscard]] std::uint32_t variable_number(std::uint32_t symbol);

  analysis::Facts& facts_;
  const analysis::Affine& affine_;
  std::array<std::uint32_t, 3> shape_;
  std::uint32_t threads_;
  std::map<std::uint32_t, std::optional<Column>> columns_;
  std::uint32_t first_unsized_ = ptx::kNone;
};

}  // namespace ptxgen::inline v0::gates
