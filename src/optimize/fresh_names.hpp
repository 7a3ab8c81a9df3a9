// src/optimize/fresh_names.hpp - unused register and label names
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "ptxgen/ptx/ir.hpp"

namespace ptxgen::inline v0::optimize {

/// Names made of a stem and a counter that clash with no register, label, variable or parameter of
/// a function and with no symbol that it refers to. A numbered declaration `%x<4>` takes %x0 to %x3
/// and nothing else.
///
/// A search tries at most one counter more than there are declared names that begin with the stem;
/// if all are taken (`$opt_<4000000000>`), the stem is lengthened until none begins with it.
class FreshNames {
 public:
  /// `stem` must not end in a digit. Reads the function once; the caller declares what it gets.
  FreshNames(ptx::Module& module, const ptx::Function& function, std::string_view stem);

  /// `<stem><counter>`, free as a name of its own.
  [[nodiscard]] ptx::NameId name();
  /// `<stem><counter>_`, free as the prefix of a numbered declaration of any count.
  [[nodiscard]] ptx::NameId prefix();

 private:
  /// Numbered registers whose names begin with the stem.
  struct Numbered {
    std::string rest;  ///< of the prefix, after the stem
    std::uint32_t count = 0;
  };
  /// What `name` has after the stem, or nothing if it does not begin with it.
  [[nodiscard]] std::optional<std::string> rest_of(ptx::NameId name) const;
  void add(ptx::NameId name);
  void lengthen_stem();
  [[nodiscard]] bool is_taken(const std::string& rest) const;
  [[nodiscard]] bool begins_a_name(const std::string& rest) const;

  ptx::Module* module_;
  std::string stem_;
  std::unordered_set<std::string> plain_;  ///< whole names, after the stem
  std::vector<Numbered> numbered_;
  std::uint64_t counter_ = 0;
};

}  // namespace ptxgen::inline v0::optimize
