// src/check/analyze/padding.cpp - the rule unmasked-padding
#include <algorithm>
#include <map>
#include <string>

#include "check/analyze/rules.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::gates {

namespace {

using namespace ptx;
using analysis::Version;

/// What a value may be.
using What = std::uint8_t;
constexpr What kZeroValue = 1;  // a constant 0
constexpr What kPadding = 2;    // made of nothing but zeros in the place of elements beyond the end
constexpr What kWeight = 4;     // an exponential of that
constexpr What kNotZero = kPadding | kWeight;

bool is_immediate(const Operand& operand) {
  return operand.kind == OperandKind::Float32 || operand.kind == OperandKind::Float64 ||
         operand.kind == OperandKind::Integer;
}

/// Follows zeros that copies put where an operand has no element: through products, which they make
/// zeros, and sums of nothing else, which are then padding too; a sum with other terms is not. A
/// value that an instruction replaces by a constant under a condition (-inf) is masked, and so is
/// what joins it. Each variable in shared memory is one place; an address without a variable may be
/// in any. What a value may be is only added to, so the time is linear.
class Padding {
 public:
  explicit Padding(RuleFindings& findings)
      : findings_(findings),
        function_(findings.function()),
        index_(findings.facts().index()),
        versions_(findings.facts().versions()),
        what_(versions_.size()),
        masked_(versions_.size()) {}

  void check() {
    if (!find_fill()) return;
    spread_masks();
    for (bool grown = true; grown;) {
      grown = false;
      const std::size_t before = stored_;
      for (const std::uint32_t block : findings_.facts().cfg().order()) grown |= visit(block);
      grown |= stored_ != before;
    }
    report_first_sum();
  }

 private:
  // The first statement that fills with zeros.
  bool find_fill() {
    for (std::uint32_t i = 0; i < function_.body.size() && fill_ == kNone; ++i) {
      if (fills_shared(i) || fills_register(i)) fill_ = i;
    }
    return fill_ != kNone;
  }
  [[nodiscard]] bool fills_shared(std::uint32_t i) const {
    const Instruction& s = function_.body[i];
    if (s.is(Op::cp_async_ignore_src) || s.is(Op::cp_async_bulk_tensor_load)) return true;
    const auto operands = function_.operands_of(s);
    return s.is(Op::cp_async_src_size) && operands.size() > 3 && !is_immediate(operands[3]);
  }
  // A guarded load over a zero.
  [[nodiscard]] bool fills_register(std::uint32_t i) const {
    const Instruction& s = function_.body[i];
    if (s.kind != StatementKind::Instruction || info(s.op).mnemonic != "ld" || !s.guard.present()) {
      return false;
    }
    const Space space = space_of(s.get(Field::Space));
    if (space != Space::Global && space != Space::Generic) return false;
    bool zero = false;
    for_each_written(i, [&](std::uint32_t version) {
      const std::uint32_t previous = versions_[version].previous;
      zero |= previous != kNone && writes_zero(previous);
    });
    return zero;
  }
  [[nodiscard]] bool writes_zero(std::uint32_t version) const {
    const Version& v = versions_[version];
    if (v.kind != Version::Kind::Write) return false;
    const Instruction& s = function_.body[v.statement];
    const auto operands = function_.operands_of(s);
    return s.is(Op::mov) && operands.size() == 2 && is_immediate(operands[1]) &&
           operands[1].value == 0;
  }

  template <class Body>
  void for_each_written(std::uint32_t statement, const Body& body) const {
    analysis::for_each_access(
        function_, function_.body[statement], [&](const analysis::RegisterAccess& access) {
          const std::uint32_t number = access.write ? index_.find(access.reg) : kNone;
          const std::uint32_t version =
              number == kNone ? kNone : versions_.written(statement, number);
          if (version != kNone) body(version);
        });
  }
  [[nodiscard]] std::uint32_t read(std::uint32_t statement, const Operand& operand) const {
    if (operand.kind != OperandKind::Register) return kNone;
    const std::uint32_t number = index_.find(operand.as_register());
    return number == kNone ? kNone : versions_.read(statement, number);
  }

  // Masks ---------------------------------------------------------------------------------------

  void spread_masks() {
    std::vector<std::uint32_t> open;
    const auto mask = [&](std::uint32_t version) {
      if (version == kNone || masked_[version]) return;
      masked_[version] = true;
      open.push_back(version);
    };
    for (std::uint32_t i = 0; i < function_.body.size(); ++i) {
      if (masks(i)) for_each_written(i, mask);
    }
    while (!open.empty()) {
      const std::uint32_t version = open.back();
      open.pop_back();
      for (const analysis::VersionUse& use : versions_.uses(version)) {
        mask(use.version);
        if (use.statement != kNone && function_.body[use.statement].is(Op::mov)) {
          for_each_written(use.statement, mask);
        }
      }
    }
  }
  // Whether it replaces a value by a constant that is not 0, under a condition.
  [[nodiscard]] bool masks(std::uint32_t i) const {
    const Instruction& s = function_.body[i];
    const auto operands = function_.operands_of(s);
    const auto other = [&](std::size_t at) {
      return is_immediate(operands[at]) && operands[at].value != 0;
    };
    if (s.is(Op::mov)) return s.guard.present() && operands.size() == 2 && other(1);
    return s.is(Op::selp) && operands.size() == 4 && (other(1) || other(2));
  }

  // Padding -------------------------------------------------------------------------------------

  bool visit(std::uint32_t block) {
    bool grown = false;
    for (const std::uint32_t phi : versions_.phis(block)) {
      What result = 0;
      for (const std::uint32_t input : versions_.inputs(phi)) {
        if (input != kNone) result |= what_[input];
      }
      grown |= add(phi, result);
    }
    const analysis::Block& of = findings_.facts().cfg().blocks()[block];
    for (std::uint32_t i = of.first; i < of.end; ++i) grown |= visit_statement(i);
    return grown;
  }
  bool visit_statement(std::uint32_t i) {
    const Instruction& s = function_.body[i];
    if (s.kind != StatementKind::Instruction) return false;
    const auto operands = function_.operands_of(s);
    if (fills_shared(i)) store(place_of(i, operands[0]), kPadding);
    if (s.is(Op::st) && s.get(Field::Space) == Modifier::shared && operands.size() > 1) {
      store(place_of(i, operands[0]), of(i, operands[1]) & kNotZero);
    }
    bool grown = false;
    if (is_product_of_matrices(s)) {
      grown = visit_product(i, operands);
    } else if (versions_.writes(i)) {
      const What result = computed(i, s, operands);
      for_each_written(i, [&](std::uint32_t version) {
        const std::uint32_t previous = versions_[version].previous;
        What all = result;
        if (previous != kNone) all |= what_[previous];
        if (fills_register(i)) all |= kPadding;
        grown |= add(version, all);
      });
    }
    return grown;
  }
  // The symbol of the variable that an address is in; kNone: it may be in any.
  [[nodiscard]] std::uint32_t place_of(std::uint32_t statement, const Operand& address) const {
    const analysis::Affine& affine = findings_.facts().affine();
    const analysis::AffineForm form = affine.of(statement, address);
    const std::uint32_t base = affine.base_term(form);
    return base == kNone ? kNone : form.terms[base].symbols[0];
  }
  void store(std::uint32_t place, What result) {
    What& there = shared_[place];
    if ((there | result) == there) return;
    there |= result;
    ++stored_;
  }
  [[nodiscard]] What load(std::uint32_t place) const {
    What all = 0;
    for (const auto& [at, what] : shared_) {
      if (place == kNone || at == kNone || at == place) all |= what;
    }
    return all;
  }
  bool add(std::uint32_t version, What result) {
    if (masked_[version]) result &= static_cast<What>(~kPadding);
    const bool grown = (what_[version] | result) != what_[version];
    what_[version] |= result;
    return grown;
  }

  // Of an operand, all elements of a vector together.
  [[nodiscard]] What of(std::uint32_t statement, const Operand& operand) const {
    if (is_immediate(operand)) return operand.value == 0 ? kZeroValue : 0;
    if (operand.kind == OperandKind::Vector) {
      What all = 0;
      for (const Operand& element : function_.elements(operand)) all |= of(statement, element);
      return all;
    }
    const std::uint32_t version = read(statement, operand);
    return version == kNone ? What{0} : what_[version];
  }

  [[nodiscard]] What computed(std::uint32_t i, const Instruction& s,
                              std::span<const Operand> operands) const {
    const std::string_view name = info(s.op).mnemonic;
    if (has(info(s.op).flags, Flag::ReadsMemory)) {
      return s.get(Field::Space) == Modifier::shared && operands.size() > 1
                 ? load(place_of(i, operands[1]))
                 : What{0};
    }
    if (operands.size() < 2) return 0;
    const What a = of(i, operands[1]);
    const What b = operands.size() > 2 ? of(i, operands[2]) : What{0};
    if (name == "mov" || name == "cvt" || name == "neg" || name == "selp" || name == "max" ||
        name == "min") {
      return a | b;
    }
    if (name == "shfl") return a;
    if (name == "ex2") return (a & kPadding) != 0 ? kWeight : 0;
    if (name == "mul") return (a | b) & kNotZero;
    if (name == "add") return sum(a, b);
    if (name == "sub") return a & kPadding;
    if (name == "fma" && operands.size() > 3) return sum((a | b) & kPadding, of(i, operands[3]));
    return 0;
  }
  /// A sum of padding and nothing else.
  static What sum(What a, What b) {
    constexpr What kNothing = kPadding | kZeroValue;
    const bool padding = ((a | b) & kPadding) != 0 && (a & kNothing) != 0 && (b & kNothing) != 0;
    return padding ? kPadding : 0;
  }

  [[nodiscard]] static bool is_product_of_matrices(const Instruction& s) {
    const std::string_view name = info(s.op).mnemonic;
    return name == "mma" || name == "wgmma" || name == "wmma";
  }
  // d = a b + c, of registers; a and b of wgmma may be in shared memory, and c is d.
  bool visit_product(std::uint32_t i, std::span<const Operand> operands) {
    if (operands.size() < 4 || operands[0].kind != OperandKind::Vector) return false;
    const bool in_place = operands[3].kind != OperandKind::Vector;
    What factors = of(i, operands[1]) | of(i, operands[2]);
    if (in_place) factors |= load(kNone);
    const bool alone = in_place && operands[3].kind == OperandKind::Integer &&
                       operands[3].value == 0;  // wgmma without the sum so far
    const auto d = function_.elements(operands[0]);
    const auto c = in_place ? d : function_.elements(operands[3]);
    bool grown = false;
    for (std::size_t e = 0; e < d.size() && e < c.size(); ++e) {
      const std::uint32_t number = index_.find(d[e].as_register());
      const std::uint32_t version = number == kNone ? kNone : versions_.written(i, number);
      if (version == kNone) continue;
      const What before = alone ? kZeroValue : of(i, c[e]);
      grown |= add(version, sum(factors & kPadding, before));
    }
    return grown;
  }

  // The report ----------------------------------------------------------------------------------

  // Whether the statement adds a weight to what is no constant, as the 1 of a sigmoid is.
  [[nodiscard]] bool adds_weight(std::uint32_t i) const {
    const Instruction& s = function_.body[i];
    if (s.kind != StatementKind::Instruction) return false;
    const auto operands = function_.operands_of(s);
    const std::string_view name = info(s.op).mnemonic;
    const auto weight = [&](std::size_t at) { return (of(i, operands[at]) & kWeight) != 0; };
    const auto constant = [&](std::size_t at) { return is_immediate(operands[at]); };
    if (is_product_of_matrices(s)) return operands.size() > 3 && (weight(1) || weight(2));
    if (name == "add" && operands.size() > 2) {
      return (weight(1) && !constant(2)) || (weight(2) && !constant(1));
    }
    if (name != "fma" || operands.size() < 4) return false;
    return (weight(1) || weight(2)) && !constant(1) && !constant(2) && !constant(3);
  }
  void report_first_sum() {
    for (std::uint32_t i = 0; i < function_.body.size(); ++i) {
      if (!findings_.facts().cfg().reachable(findings_.facts().cfg().block_of(i)) ||
          !adds_weight(i))
        continue;
      Finding& finding = findings_.report(
          Severity::Warning, "unmasked-padding", i,
          format_text("a sum of exponentials counts elements beyond the end: the zeros that {} "
                      "fills in for them have a weight of their own",
                      findings_.place(fill_)),
          "zeros change no sum of products, but exp(0) is not 0",
          "replace the scores of elements beyond the end by -inf before the exponential");
      finding.other_line = findings_.at(fill_).line;
      return;
    }
  }

  RuleFindings& findings_;
  const Function& function_;
  const analysis::RegisterIndex& index_;
  const analysis::Versions& versions_;
  std::vector<What> what_;
  std::vector<bool> masked_;
  std::map<std::uint32_t, What> shared_;  ///< what may be in a place of shared memory
  std::size_t stored_ = 0;                ///< how often that grew
  std::uint32_t fill_ = kNone;
};

}  // namespace

void find_unmasked_padding(RuleFindings& findings) { Padding(findings).check(); }

}  // namespace ptxgen::inline v0::gates
