// src/analysis/affine_solver.hpp - computes the affine form of every version
#pragma once

#include <map>

#include "analysis/affine_forms.hpp"

namespace ptxgen::inline v0::analysis {

class AffineSolver {
 public:
  AffineSolver(Affine& result, const UniformityOptions& options);
  void solve();

 private:
  using Kind = AffineSymbol::Kind;
  using Operation = AffineOperation;

  // --- symbols and operations (affine_operations.cpp) -------------------------------------------
  std::uint32_t symbol(const AffineSymbol& wanted);
  std::uint32_t new_symbol(const AffineSymbol& added);
  std::uint32_t form_number(const AffineForm& form);
  AffineForm operation(Operation kind, std::span<const AffineForm> operands, unsigned bits,
                       bool is_signed, ptx::Modifier comparison = ptx::Modifier::none);
  // The range of the form as a number of its width.
  AffineRange number_range(const AffineForm& form, bool is_signed) const;
  // Whether the form is, as an integer without bounds, such a number.
  bool is_number(const AffineForm& form, bool is_signed) const;
  AffineForm widened(const AffineForm& form, unsigned bits, bool is_signed);
  std::uint32_t assumption(const AffineForm& form, bool is_signed);
  AffineForm quotient(const AffineForm& form, std::int64_t divisor, bool is_signed);
  AffineForm remainder(const AffineForm& form, std::int64_t divisor);
  AffineForm bit_and(const AffineForm& a, const AffineForm& b);
  AffineForm bit_or(const AffineForm& a, const AffineForm& b, Operation kind);
  AffineForm smaller(const AffineForm& a, const AffineForm& b, bool is_signed, Operation kind);
  AffineForm compared(ptx::Modifier comparison, const AffineForm& a, const AffineForm& b,
                      bool is_signed);
  AffineForm selected(const AffineForm& condition, const AffineForm& yes, const AffineForm& no);
  static AffineForm negation(const AffineForm& form);  // ~a, !a

  // --- statements (affine_statements.cpp) -------------------------------------------------------
  AffineForm value_symbol(std::uint32_t version);
  AffineForm written(std::uint32_t version);
  bool too_complex(const AffineForm& form) const;
  // What the statement puts in the part of operand `at` (element of a vector); empty: unknown.
  std::optional<AffineForm> result(std::uint32_t statement, std::size_t at, std::size_t element,
                                   unsigned bits);
  std::optional<AffineForm> arithmetic(const ptx::Instruction& s,
                                       std::span<const AffineForm> sources, unsigned bits);
  std::optional<AffineForm> division(const ptx::Instruction& s,
                                     std::span<const AffineForm> sources);
  std::optional<AffineForm> shift(const ptx::Instruction& s, std::span<const AffineForm> sources,
                                  unsigned bits);
  std::optional<AffineForm> bit_field(const ptx::Instruction& s,
                                      std::span<const AffineForm> sources, unsigned bits);
  AffineForm conversion(const ptx::Instruction& s, const AffineForm& source, unsigned bits);
  std::optional<AffineForm> comparison(const ptx::Instruction& s, std::size_t at,
                                       std::span<const AffineForm> sources);
  std::optional<AffineForm> parameter(const ptx::Instruction& s, std::size_t element,
                                      unsigned bits);
  std::optional<AffineForm> operand(std::uint32_t statement, const ptx::Operand& operand,
                                    unsigned bits);
  std::optional<AffineForm> special(const ptx::Operand& operand, unsigned bits);

  // --- where paths join (affine_paths.cpp) ------------------------------------------------------
  void merge_inputs(std::uint32_t phi);
  void find_leaving();
  void start_phi(std::uint32_t version);
  void finish_loop(std::uint32_t loop);
  void find_induction(std::uint32_t version, std::uint32_t loop);
  void find_rest(std::uint32_t version, std::uint32_t loop);
  void add_ways(std::uint32_t symbol, const AffineForm& shared, std::span<const AffineForm> ways);
  void agree(const AffineForm& form, Agreement agreement);
  Agreement agreement_of(const AffineTerm& term) const;
  bool varies(const AffineForm& form, std::uint32_t loop) const;
  bool varies(std::uint32_t symbol, std::uint32_t loop) const;
  Agreement of_meeting(std::uint32_t block);
  void expand_to(std::uint32_t symbol, AffineForm form);
  std::uint32_t phi_symbol(std::uint32_t version) const;

  Affine& r_;
  const ptx::Module& module_;
  const ptx::Function& function_;
  const Cfg& cfg_;
  const Versions& versions_;
  const Uniformity& uniformity_;
  const UniformityOptions options_;
  std::map<std::vector<std::uint64_t>, std::uint32_t> symbol_numbers_, form_numbers_;
  std::map<std::pair<std::uint32_t, bool>, std::uint32_t> assumption_numbers_;
  std::vector<std::uint32_t> value_symbols_;  // of each version
  std::vector<std::uint32_t> phi_symbols_;    // of each version
  std::vector<Agreement> leaving_;            // how far threads agree when to leave each loop
  std::vector<bool> left_apart_;              // not in the whole grid, it or a loop around it
  std::vector<std::uint8_t> meeting_known_;   // of each block
  std::vector<Agreement> meeting_;
};

}  // namespace ptxgen::inline v0::analysis
