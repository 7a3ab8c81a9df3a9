// src/analysis/affine_text.cpp - text of affine forms
#include <algorithm>

#include "analysis/affine_forms.hpp"

namespace ptxgen::inline v0::analysis {

using namespace ptx;
using Kind = AffineSymbol::Kind;

class AffineText {
 public:
  explicit AffineText(const Affine& affine) : affine_(affine) {}

  [[nodiscard]] std::string form(const AffineForm& f, std::uint32_t without = kNone) const {
    std::vector<std::uint32_t> order;
    for (std::uint32_t i = 0; i < f.terms.size(); ++i)
      if (i != without) order.push_back(i);
    std::ranges::stable_sort(order, {}, [&](std::uint32_t i) {
      return std::pair(rank(f.terms[i]), f.terms[i].coefficient < 0);
    });
    std::string text;
    for (const std::uint32_t i : order) append(text, f.terms[i]);
    if (f.constant != 0 || text.empty()) append_sign(text, f.constant);
    if (f.constant != 0 || text.empty()) text += digits(f.constant);
    return text;
  }

  [[nodiscard]] std::string symbol(std::uint32_t number) const {
    const AffineSymbol& s = affine_.symbols_[number];
    const auto component = [&](std::string_view name) {
      return std::string(name) + '.' + "xyzw"[s.component];
    };
    switch (s.kind) {
      case Kind::Thread:
        return component("tid");
      case Kind::Block:
        return component("ctaid");
      case Kind::BlockShape:
        return component("ntid");
      case Kind::GridShape:
        return component("nctaid");
      case Kind::Lane:
        return "laneid";
      case Kind::Special: {
        std::string name(info(static_cast<SpecialRegister>(s.id)).text);
        if (s.component != 0) name += std::string(".") + "xyzw"[s.component - 1];
        return name;
      }
      case Kind::Parameter: {
        std::string name(affine_.module_->text(affine_.function_->parameters[s.id].name));
        return s.offset == 0 ? name : name + '@' + std::to_string(s.offset);
      }
      case Kind::Address: {
        const auto& symbols = affine_.module_->symbols;
        return s.id < symbols.size() ? std::string(affine_.module_->text(symbols[s.id].name)) : "?";
      }
      case Kind::Iteration:
        return letter(s.id);
      case Kind::FinalIteration:
        return "iterations(" + letter(s.id) + ')';
      case Kind::Phi:
      case Kind::Value:
        return name_of_version(s.id);
      case Kind::Rest:
        return "rest(" + name_of_version(s.id) + ')';
      case Kind::Operation:
        return operation(s);
    }
    return {};
  }

 private:
  static std::string digits(std::int64_t value) {
    const auto bits = static_cast<std::uint64_t>(value);
    return std::to_string(value < 0 ? 0 - bits : bits);
  }
  static void append_sign(std::string& text, std::int64_t value) {
    if (text.empty())
      text += value < 0 ? "-" : "";
    else
      text += value < 0 ? " - " : " + ";
  }
  // Loops of one depth share a letter: of two that a form names, one is over.
  [[nodiscard]] std::string letter(std::uint32_t loop) const {
    const std::uint32_t depth = affine_.cfg_->loops().loops()[loop].depth;
    return depth <= 6 ? std::string(1, "ijklmo"[depth - 1]) : 'i' + std::to_string(depth);
  }
  [[nodiscard]] std::string name_of_version(std::uint32_t version) const {
    if (version == kNone) return "?";
    const Version& v = (*affine_.versions_)[version];
    return name_of(*affine_.module_, *affine_.function_, (*affine_.index_)[v.reg]);
  }

  [[nodiscard]] int rank(const AffineTerm& term) const {
    int highest = 3;
    for (const std::uint32_t factor : term.symbols) {
      if (factor == kNone) break;
      switch (affine_.symbols_[factor].kind) {
        case Kind::Thread:
        case Kind::Lane:
          return 0;
        case Kind::Operation:
          highest = std::min(highest, 1);
          break;
        case Kind::Block:
          highest = std::min(highest, 2);
          break;
        case Kind::Iteration:
        case Kind::FinalIteration:
          highest = highest == 3 ? 4 : highest;
          break;
        default:
          break;
      }
    }
    return highest;
  }
  [[nodiscard]] int factor_rank(std::uint32_t factor) const {
    switch (affine_.symbols_[factor].kind) {
      case Kind::Parameter:
        return 0;
      case Kind::BlockShape:
      case Kind::GridShape:
        return 1;
      case Kind::Iteration:
      case Kind::FinalIteration:
        return 3;
      default:
        return 2;
    }
  }
  void append(std::string& text, const AffineTerm& term) const {
    append_sign(text, term.coefficient);
    if (term.coefficient != 1 && term.coefficient != -1) text += digits(term.coefficient) + '*';
    std::vector<std::uint32_t> factors;
    for (const std::uint32_t factor : term.symbols)
      if (factor != kNone) factors.push_back(factor);
    std::ranges::stable_sort(factors, {}, [&](std::uint32_t f) { return factor_rank(f); });
    for (std::size_t i = 0; i < factors.size(); ++i) {
      if (i != 0) text += '*';
      text += symbol(factors[i]);
    }
  }

  [[nodiscard]] std::string operation(const AffineSymbol& s) const {
    constexpr std::uint8_t kDeepest = 4;
    if (s.depth > kDeepest) return "...";
    const auto operand = [&](std::size_t i) {
      const AffineForm& f = affine_.forms_[s.operands[i]];
      // As an unsigned number it is not below 0.
      if (f.is_constant() && f.constant < 0 && !s.is_signed && f.bits < 64)
        return std::to_string(pattern(static_cast<std::uint64_t>(f.constant), f.bits));
      return form(f);
    };
    const auto part = [&](std::size_t i) {
      const AffineForm& f = affine_.forms_[s.operands[i]];
      const bool simple =
          f.is_constant() || (f.terms.size() == 1 && f.constant == 0 &&
                              f.terms[0].coefficient == 1 && f.terms[0].symbols[1] == kNone);
      return simple ? operand(i) : '(' + operand(i) + ')';
    };
    const auto infix = [&](std::string_view sign) {
      return '(' + part(0) + ' ' + std::string(sign) + ' ' + part(1) + ')';
    };
    switch (s.operation) {
      case AffineOperation::Quotient:
        return '(' + part(0) + '/' + part(1) + ')';
      case AffineOperation::Remainder:
        return infix("mod");
      case AffineOperation::Minimum:
        return "min(" + operand(0) + ", " + operand(1) + ')';
      case AffineOperation::Maximum:
        return "max(" + operand(0) + ", " + operand(1) + ')';
      case AffineOperation::And:
        return infix("&");
      case AffineOperation::Or:
        return infix("|");
      case AffineOperation::Xor:
        return infix("^");
      case AffineOperation::ShiftLeft:
        return infix("<<");
      case AffineOperation::ShiftRight:
        return infix(">>");
      case AffineOperation::Compare:
        switch (s.comparison) {
          case Modifier::lt:
            return infix("<");
          case Modifier::le:
            return infix("<=");
          case Modifier::eq:
            return infix("==");
          default:
            return infix("!=");
        }
      case AffineOperation::Select:
        return '(' + part(0) + " ? " + operand(1) + " : " + operand(2) + ')';
      case AffineOperation::None:
        break;
    }
    return {};
  }

  const Affine& affine_;
};

std::string Affine::to_text(const AffineForm& form) const { return AffineText(*this).form(form); }

std::string Affine::to_text(const AffineAssumption& assumption) const {
  const AffineForm& form = forms_[assumption.form];
  return AffineText(*this).form(form) + " as " + (assumption.is_signed ? 's' : 'u') +
         std::to_string(form.bits);
}

std::uint32_t Affine::base_term(const AffineForm& form) const {
  std::uint32_t found = kNone;
  bool variable = false;
  for (std::uint32_t i = 0; i < form.terms.size(); ++i) {
    const AffineTerm& term = form.terms[i];
    if (term.coefficient != 1 || term.symbols[1] != kNone) continue;
    const AffineSymbol& s = symbols_[term.symbols[0]];
    const bool address = s.kind == Kind::Address;
    if (!address && (s.kind != Kind::Parameter || s.bits != 64 || variable)) continue;
    // Of two pointers neither is the base.
    if (found != kNone && address == variable) return kNone;
    found = i;
    variable = address;
  }
  return found;
}

std::string Affine::address_text(const AffineForm& form) const {
  const std::uint32_t base = base_term(form);
  const AffineText text(*this);
  if (base == kNone) return text.form(form);
  return text.symbol(form.terms[base].symbols[0]) + '[' + text.form(form, base) + ']';
}

std::string to_text(const Affine& affine) {
  std::string text;
  const Versions& versions = affine.versions();
  for (std::uint32_t v = 0; v < versions.size(); ++v) {
    const Version& version = versions[v];
    if (version.kind == Version::Kind::Entry || versions.uses(v).empty()) continue;
    text += name_of(affine.module(), affine.function(), affine.index()[version.reg]);
    text += version.kind == Version::Kind::Phi
                ? " at block " + std::to_string(version.block)
                : " by statement " + std::to_string(version.statement);
    const AffineForm form = affine.of_version(v, version.block);
    text += ": " + affine.to_text(form);
    for (const std::uint32_t assumption : form.assumptions)
      text += "; assuming " + affine.to_text(affine.assumption(assumption));
    text += '\n';
  }
  return text;
}

}  // namespace ptxgen::inline v0::analysis
