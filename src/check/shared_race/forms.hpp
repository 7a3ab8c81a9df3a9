// src/check/shared_race/forms.hpp - addresses and conditions, thread by thread
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "check/shared_race/accesses.hpp"
#include "ptxgen/analysis/affine.hpp"

namespace ptxgen::inline v0::gates {

/// A product of symbols of an affine form, padded with kNone.
using SymbolKey = std::array<std::uint32_t, 3>;

/// A form with the part that depends on the thread computed: `values[thread]` + the sum of
/// coefficient * key.
struct ThreadForm {
  std::vector<std::int64_t> values;
  std::vector<std::pair<SymbolKey, std::int64_t>> rest;  ///< by key
  std::vector<std::uint32_t> assumptions;                ///< of the affine form
  std::uint32_t variable = ptx::kNone;  ///< the shared variable whose address is a term, if any
  bool elsewhere = false;               ///< a generic address of memory that is not shared
  bool known = false;                   ///< if not, the other members are meaningless
};

/// A comparison of `values[thread] + coefficient * key` with 0.
struct ThreadCondition {
  std::vector<std::int64_t> values;
  SymbolKey key{ptx::kNone, ptx::kNone, ptx::kNone};
  std::int64_t coefficient = 0;
  ptx::Modifier comparison = ptx::Modifier::none;  ///< lt le eq ne
  bool holds = true;                               ///< or does not
  std::uint32_t compare = ptx::kNone;              ///< the symbol of the comparison
  bool assumes = false;                            ///< it rests on assumptions
};

/// Addresses with the threads that access them.
using AddressList = std::vector<std::pair<std::int64_t, std::uint32_t>>;

/// One access in all threads of a block.
struct AccessForm {
  ThreadForm address;
  std::vector<bool> may;  ///< by thread: conditions on its index alone allow the access
  std::vector<ThreadCondition> conditions;  ///< with a symbol

  /// The addresses of the threads that may access them, modulo `modulus` (0: as they are), with the
  /// threads, sorted. Kept, since an access is compared with many.
  [[nodiscard]] const AddressList& sorted(std::uint64_t modulus) const;

 private:
  struct Sorted {
    std::uint64_t modulus;
    AddressList addresses;
  };
  mutable std::vector<Sorted> sorted_;
};

/// The form with phi symbols replaced by their expansions.
[[nodiscard]] analysis::AffineForm expanded(const analysis::Affine& affine,
                                            const analysis::AffineForm& form);

/// Computes forms for blocks of one shape. Refers to its arguments.
class ThreadForms {
 public:
  ThreadForms(analysis::Facts& facts, const analysis::Affine& affine,
              std::array<std::uint32_t, 3> shape);

  /// Gives the symbol a value. Must precede all queries.
  void fix(std::uint32_t symbol, std::uint64_t value) {
    columns_[symbol] = std::vector<std::int64_t>(threads_, static_cast<std::int64_t>(value));
  }
  [[nodiscard]] std::uint32_t threads() const noexcept { return threads_; }
  /// A form's values by thread, if they depend on the thread alone.
  [[nodiscard]] std::optional<std::vector<std::int64_t>> values(const analysis::AffineForm& form) {
    return column(form);
  }
  /// The address of an access, and the conditions of its guard and of branches that decide it.
  [[nodiscard]] AccessForm of(const SharedAccess& access);
  [[nodiscard]] const analysis::AffineSymbol& symbol(std::uint32_t symbol) const noexcept {
    return affine_.symbols()[symbol];
  }

 private:
  using Column = std::vector<std::int64_t>;
  /// A symbol's values, or nullptr if they depend on more than the thread.
  const Column* column(std::uint32_t symbol);
  /// A form's values, if it has no rest.
  std::optional<Column> column(const analysis::AffineForm& form);
  [[nodiscard]] Column operation(const analysis::AffineSymbol& symbol,
                                 const std::array<Column, 3>& operands) const;
  [[nodiscard]] ThreadForm computed(const analysis::AffineForm& form);
  /// The conditions of the branches that decide whether a block is executed; no address.
  const AccessForm& conditions_of(std::uint32_t block);
  /// `assumes`: the form from which this one comes rests on assumptions.
  void add_condition(const analysis::AffineForm& form, bool holds, bool assumes, AccessForm& out,
                     int depth);
  void add_comparison(std::uint32_t compare, bool holds, bool assumes, AccessForm& out);
  /// Variables that overlap share one number.
  [[nodiscard]] std::uint32_t variable_number(std::uint32_t symbol);

  analysis::Facts& facts_;
  const analysis::Affine& affine_;
  std::array<std::uint32_t, 3> shape_;
  std::uint32_t threads_;
  std::map<std::uint32_t, std::optional<Column>> columns_;
  std::map<std::uint32_t, AccessForm> of_blocks_;  ///< see `conditions_of`
  std::uint32_t first_unsized_ = ptx::kNone;
};

}  // namespace ptxgen::inline v0::gates
