// ptxgen/analysis/affine.hpp - values and addresses as affine sums
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ptxgen/analysis/uniformity.hpp"
#include "ptxgen/analysis/versions.hpp"

namespace ptxgen::inline v0::analysis {

/// Operations that are not affine. Each result is a symbol of its own whose operands are forms.
enum class AffineOperation : std::uint8_t {
  None,
  Quotient,    ///< a / b, rounded down; b is a constant above 0
  Remainder,   ///< of a / b: 0 .. b-1
  Minimum,     ///< of a and b
  Maximum,     ///< of a and b
  And,         ///< bitwise, of predicates too
  Or,          ///< likewise
  Xor,         ///< likewise
  ShiftLeft,   ///< a by b bits; 0 where b is not below the width
  ShiftRight,  ///< a by b bits, filled with zeros, or with the sign if `is_signed`
  Compare,     ///< 1 if `comparison` holds between a and b, else 0
  Select,      ///< b if a is not 0, else c
};

/// An unknown of affine forms: an integer of `bits` bits, signed if `is_signed`.
struct AffineSymbol {
  enum class Kind : std::uint8_t {
    Thread,          ///< %tid, `component` 0 for x
    Block,           ///< %ctaid
    BlockShape,      ///< %ntid, if the block shape is unknown
    GridShape,       ///< %nctaid
    Lane,            ///< %laneid
    Special,         ///< special register `id`, `component` as in ptx::Operand
    Parameter,       ///< `bits` bits of parameter `id` of the kernel from byte `offset` on
    Address,         ///< address of the variable named by symbol `id` of the module
    Iteration,       ///< iterations of loop `id` completed so far, inside the loop
    FinalIteration,  ///< iterations of loop `id` completed when the thread left it
    Phi,             ///< version `id`, a phi
    Rest,            ///< the part of phi `id` that is the same in all lanes
    Value,           ///< version `id`, nothing else known
    Operation,       ///< `operation` of the forms `operands`
  };
  Kind kind = Kind::Value;
  AffineOperation operation = AffineOperation::None;
  ptx::Modifier comparison = ptx::Modifier::none;  ///< Compare: eq ne lt le gt ge
  std::uint8_t component = 0;
  std::uint8_t bits = 64;
  bool is_signed = false;
  bool restless = false;  ///< may change anywhere, not only in `loop`
  /// The value when the thread left the loop that changes it. Threads may leave in different
  /// iterations.
  bool left = false;
  std::uint8_t depth = 0;  ///< Operation: nesting depth of the operands
  /// Which threads at the same statement have the same value.
  Agreement agreement = Agreement::None;
  std::uint32_t id = ptx::kNone;
  std::uint32_t offset = 0;
  std::uint32_t loop = kNoNode;  ///< innermost loop that changes the value
  std::array<std::uint32_t, 3> operands{ptx::kNone, ptx::kNone, ptx::kNone};  ///< in `forms()`
};

/// A coefficient times up to three symbols (numbers in `Affine::symbols()`, ascending, then kNone).
struct AffineTerm {
  std::int64_t coefficient = 0;
  std::array<std::uint32_t, 3> symbols{ptx::kNone, ptx::kNone, ptx::kNone};
  friend bool operator==(const AffineTerm&, const AffineTerm&) = default;
};

/// `constant` + the terms, equal to the value modulo 2^bits if the assumptions hold. An assumption
/// is needed where a value was widened (say, from 32 to 64 bits) and the analysis could not prove
/// that it had not wrapped before. A form without assumptions is exact.
struct AffineForm {
  std::uint8_t bits = 64;
  std::int64_t constant = 0;
  std::vector<AffineTerm> terms;           ///< in ascending order of their symbols, none twice
  std::vector<std::uint32_t> assumptions;  ///< in `Affine::assumptions()`, ascending
  [[nodiscard]] bool is_constant() const noexcept { return terms.empty(); }
  /// Whether it rests on assumptions.
  [[nodiscard]] bool may_wrap() const noexcept { return !assumptions.empty(); }
};

/// Equal constants and terms; assumptions are ignored.
[[nodiscard]] bool same_terms(const AffineForm& a, const AffineForm& b) noexcept;

/// Assumes that `form`, computed without wrap-around, fits a signed or unsigned integer of its
/// width.
struct AffineAssumption {
  std::uint32_t form = 0;  ///< in `Affine::forms()`
  bool is_signed = false;
};

/// An inclusive range of integers; unknown if it does not fit 63 bits.
struct AffineRange {
  bool known = false;
  std::int64_t min = 0;
  std::int64_t max = 0;
};

/// Ranges of symbols, by their number in `Affine::symbols()`; those that are not there, or empty,
/// were not computed.
using AffineRanges = std::vector<std::optional<AffineRange>>;

/// The variable named by a symbol of the module, or nullptr.
[[nodiscard]] const ptx::Variable* variable_of(const ptx::Module& module,
                                               std::uint32_t symbol) noexcept;

/// What is known about the shape of a block.
struct BlockBounds {
  enum class Kind : std::uint8_t {
    Exact,    ///< from the options or `.reqntid`
    Bounded,  ///< at most so many threads per dimension, from `.maxntid`
    Unknown,  ///< the limits of every GPU: 1024, 1024, 64
  };
  Kind kind = Kind::Unknown;
  std::array<std::uint32_t, 3> size{1024, 1024, 64};
  friend bool operator==(const BlockBounds&, const BlockBounds&) = default;
};
/// Zeros in `options.block`: not given there.
[[nodiscard]] BlockBounds block_bounds(const ptx::Function& function,
                                       const UniformityOptions& options = {});

/// Affine forms of the integers and predicates of one function.
///
/// Follows mov, cvta, cvt, add, sub, neg, mul and mad (lo and wide), shl, loads of kernel
/// parameters, and `or` and `xor` of disjoint bits. `shr`, `and`, `bfe`, `div`, `rem`, `min`,
/// `max`, `setp`, `selp` and guards become operations unless they simplify. A generic address has
/// the form of the address it was converted from; an address in another block of the cluster has
/// the form of the same location in the own block. A register that a loop advances by a constant
/// step is its value before the loop plus the step times the symbol Iteration. At a phi the terms
/// common to all inputs are separated from the Rest, if lanes agree on the path. Everything else
/// is a symbol of its own (Value, Phi).
///
/// Near-linear in the function: forms beyond a fixed size become symbols. Keeps references to its
/// arguments, which must not change during its lifetime.
class Affine {
 public:
  Affine(const ptx::Module& module, const ptx::Function& function, const Cfg& cfg,
         const RegisterIndex& index, const Versions& versions, const Uniformity& uniformity,
         const UniformityOptions& options = {});

  /// The value of an operand that a statement reads; for Memory its address with the offset. In an
  /// unreachable block, and for floating-point registers, a symbol.
  [[nodiscard]] AffineForm of(std::uint32_t statement, const ptx::Operand& operand) const;
  /// 1 if the statement's guard lets it execute, else 0; constant 1 without a guard.
  [[nodiscard]] AffineForm guard(std::uint32_t statement) const;
  /// The value of a version at a statement of `block`. For loops that do not contain the block,
  /// FinalIteration replaces Iteration.
  [[nodiscard]] AffineForm of_version(std::uint32_t version, std::uint32_t block) const;
  /// The same without expanding Phi symbols.
  [[nodiscard]] const AffineForm& unexpanded(std::uint32_t version) const noexcept {
    return versions_forms_[version];
  }
  /// The expansion of a Phi symbol, or nullptr.
  [[nodiscard]] const AffineForm* expansion(std::uint32_t symbol) const noexcept;

  [[nodiscard]] std::span<const AffineSymbol> symbols() const noexcept { return symbols_; }
  [[nodiscard]] const AffineForm& form(std::uint32_t form) const noexcept { return forms_[form]; }
  [[nodiscard]] const AffineAssumption& assumption(std::uint32_t assumption) const noexcept {
    return assumptions_[assumption];
  }

  /// The number of the symbol for %tid, %ctaid, ... or a loop or parameter; kNone if no form uses
  /// it.
  [[nodiscard]] std::uint32_t find(AffineSymbol::Kind kind, std::uint32_t id_or_component) const;
  /// The coefficient of a symbol that is a term by itself; 0 if the symbol does not occur. Nothing
  /// if it is part of a product or an operand of an operation.
  [[nodiscard]] std::optional<std::int64_t> coefficient(const AffineForm& form,
                                                        std::uint32_t symbol) const;
  /// a - b, in the width of a.
  [[nodiscard]] static AffineForm difference(const AffineForm& a, const AffineForm& b);
  /// Splits a form: the terms whose agreement is at most `below`, and the other terms with the
  /// constant.
  struct Parts {
    AffineForm differing, agreeing;
  };
  [[nodiscard]] Parts split(const AffineForm& form, Agreement agreeing = Agreement::Warp) const;

  /// The range of a form, computed without wrap-around, in blocks of at most that shape.
  [[nodiscard]] AffineRange range(const AffineForm& form, const BlockBounds& block) const;
  [[nodiscard]] const BlockBounds& block() const noexcept { return block_; }
  /// The same where symbols have the ranges in `known`; those of others are added to it. A phi
  /// at a join has a value of one of its inputs. The range is that of an integer equal to
  /// the value modulo 2^bits, if the form's assumptions hold.
  [[nodiscard]] AffineRange range(const AffineForm& form, const BlockBounds& block,
                                  AffineRanges& known) const;
  /// Whether the form's assumptions are proved in blocks of at most that shape.
  [[nodiscard]] bool assumptions_hold(const AffineForm& form, const BlockBounds& block) const;
  [[nodiscard]] bool assumptions_hold(const AffineForm& form, const BlockBounds& block,
                                      AffineRanges& known) const;

  /// `4*tid.x + 1024*ctaid.x + 4*n*i`: parameters, variables and registers by name, `i` the
  /// iterations of the outermost loop around, then `j`, `k`, ...; `(a + b)/32`, `(a) mod 32`.
  [[nodiscard]] std::string to_text(const AffineForm& form) const;
  /// `a[4*tid.x + 128]` where a variable or a pointer in a parameter is a term of its own;
  /// otherwise as `to_text`.
  [[nodiscard]] std::string address_text(const AffineForm& form) const;
  /// `4*i + tid.x as u32`: a value assumed not to wrap around.
  [[nodiscard]] std::string to_text(const AffineAssumption& assumption) const;
  /// The base of an address: the term of a variable, or of the only 64-bit parameter with
  /// coefficient 1. A number in `form.terms`; kNone if there is none.
  [[nodiscard]] std::uint32_t base_term(const AffineForm& form) const;

  [[nodiscard]] const ptx::Module& module() const noexcept { return *module_; }
  [[nodiscard]] const ptx::Function& function() const noexcept { return *function_; }
  [[nodiscard]] const Cfg& cfg() const noexcept { return *cfg_; }
  [[nodiscard]] const RegisterIndex& index() const noexcept { return *index_; }
  [[nodiscard]] const Versions& versions() const noexcept { return *versions_; }
  [[nodiscard]] const Uniformity& uniformity() const noexcept { return *uniformity_; }

 private:
  friend class AffineSolver;
  friend class AffineText;
  [[nodiscard]] AffineForm expand(const AffineForm& form, std::uint32_t block) const;
  struct Ranges;
  [[nodiscard]] AffineRange range(const AffineForm& form, Ranges& known) const;
  [[nodiscard]] bool assumptions_hold(const AffineForm& form, Ranges& known) const;
  [[nodiscard]] AffineRange range_of_phi(std::uint32_t symbol, Ranges& known,
                                         AffineRange range) const;
  void add_range();
  [[nodiscard]] AffineRange range_of_symbol(std::uint32_t symbol, Ranges& known) const;
  [[nodiscard]] bool is_shared(const AffineSymbol& symbol) const;

  const ptx::Module* module_;
  const ptx::Function* function_;
  const Cfg* cfg_;
  const RegisterIndex* index_;
  const Versions* versions_;
  const Uniformity* uniformity_;
  BlockBounds block_;
  std::vector<AffineSymbol> symbols_;
  std::vector<AffineForm> forms_;
  std::vector<AffineAssumption> assumptions_;
  std::vector<AffineForm> versions_forms_;  // of each version, with Phi symbols
  std::vector<std::uint32_t> expansions_;   // of each symbol, in forms_; kNone: none
  std::vector<AffineRange> ranges_;         // of each symbol, for `block_`
  // Of each Phi and Rest symbol at a join, the forms of its inputs; none of later symbols.
  std::vector<std::vector<std::uint32_t>> ways_;
  std::vector<std::uint32_t> expansion_assumes_;            // of each symbol, that it does not wrap
  std::vector<std::uint32_t> iteration_, final_iteration_;  // symbols of each loop
  std::vector<std::uint32_t> left_;  // by symbol, its value after its loop; kNone: itself
  std::uint32_t unknown_ = ptx::kNone;
};

/// One line per version that is read: register, statement and form.
[[nodiscard]] std::string to_text(const Affine& affine);

}  // namespace ptxgen::inline v0::analysis
