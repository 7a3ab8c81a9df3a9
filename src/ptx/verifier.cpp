// src/ptx/verifier.cpp - verifier of modules
#include "ptxgen/ptx/verifier.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "ptx/earlier_body.hpp"
#include "ptx/order_modifiers.hpp"
#include "ptx/requirements.hpp"
#include "ptx/verify_functions.hpp"
#include "ptxgen/ptx/printer.hpp"
#include "ptxgen/ptx/unknown.hpp"
#include "support/count.hpp"
#include "support/format.hpp"
#include "support/numbers.hpp"
#include "support/scratch.hpp"

namespace ptxgen::inline v0::ptx {

namespace {

class Verifier {
 public:
  Verifier(const Module& module, const VerifyOptions& options,
           const std::vector<bool>* bodies = nullptr, const Module* before = nullptr)
      : module_(module), options_(options), bodies_(bodies), before_(before) {}

  std::vector<Finding> run() {
    header();
    module_names();
    for (const Variable& variable : module_.variables) {
      check_variable(variable);
      declaration(variable, false);
    }
    for (const Item& item : module_.items) {
      if (item.kind != Item::Kind::Function) continue;
      if (bodies_ == nullptr || (*bodies_)[item.index]) function(item.index);
    }
    entries();
    return std::move(findings_);
  }

 private:
  std::string_view target_text() const {
    return options_.target.empty() ? std::string_view(module_.target) : options_.target;
  }

  Finding& report(std::string_view rule, std::string message, std::uint32_t line,
                  Severity severity = Severity::Error) {
    Finding& finding = findings_.emplace_back();
    finding.severity = severity;
    finding.rule = rule;
    finding.message = std::move(message);
    finding.file = module_.file;
    finding.line = line;
    if (function_ != nullptr) finding.kernel = module_.text(function_->name);
    return finding;
  }

  void report(std::string_view rule, std::string message, const Instruction& s,
              std::string_view cure, Severity severity = Severity::Error) {
    Finding& finding = report(rule, std::move(message), s.line, severity);
    finding.cpp = module_.site_of(s);
    finding.details.push_back("in: " + print(module_, *function_, s));
    if (!cure.empty()) finding.details.push_back("cure: " + std::string(cure));
  }

  void header() {
    if (!parse_target_name(target_text(), target_)) {
      report(
          "target-lacks",
          format_text("'{}' is not a target: expected sm_NN, sm_NNa or sm_NNf, for example sm_89",
                      target_text()),
          module_.target_line);
      return;
    }
    const Target* row = find_target(target_text());
    if (row != nullptr && module_.version < row->version) {
      report("version-too-low",
             format_text("target {} needs PTX {}, .version is {}", row->name, text(row->version),
                         text(module_.version)),
             module_.version_line);
    }
  }

  // Names -------------------------------------------------------------------------------------

  void module_names() {
    std::unordered_map<std::string_view, const Function*> functions;
    std::unordered_set<std::string_view> variables;
    for (const Item& item : module_.items) {
      if (item.kind == Item::Kind::Variable) {
        const Variable& v = module_.variables[item.index];
        const std::string_view name = module_.text(v.name);
        // A module may have a declaration (.extern) and its definition.
        const bool repeat = !variables.insert(name).second && v.linkage != Linkage::Extern;
        if (repeat) defined_again(item.index);
        if (functions.count(name) != 0) duplicate("variable", name, v.line);
      } else if (item.kind == Item::Kind::Function) {
        const Function& f = module_.functions[item.index];
        const std::string_view name = module_.text(f.name);
        if (variables.count(name) != 0) duplicate("function", name, f.line);
        const auto [at, added] = functions.emplace(name, &f);
        if (added) continue;
        if (!f.declaration && !at->second->declaration) duplicate("function", name, f.line);
        if (!f.declaration) at->second = &f;
      }
    }
  }

  // After a declaration: a definition that is visible to other modules and has the same type.
  void defined_again(std::uint32_t index) {
    const Variable& v = module_.variables[index];
    const auto first = std::find_if(module_.variables.begin(), module_.variables.end(),
                                    [&](const Variable& other) { return other.name == v.name; });
    const std::string name(module_.text(v.name));
    if (first->linkage != Linkage::Extern) return duplicate("variable", name, v.line);
    if (v.linkage == Linkage::None) {
      report("bad-declaration", format_text("'{}' is .extern above, and not .visible here", name),
             v.line)
          .details = {"rule: the definition of an .extern symbol must be visible to other modules",
                      "cure: define it .visible or .weak, or remove the declaration"};
    } else if (first->type != v.type || first->vector != v.vector || !same_extent(*first, v)) {
      report("bad-declaration",
             format_text("'{}' has another type than its .extern declaration", name), v.line)
          .details = {"rule: a definition has the type of its declaration",
                      "cure: write the same type and number of elements in both"};
    }
  }

  static bool same_extent(const Variable& declared, const Variable& defined) {
    if (declared.dimensions.size() != defined.dimensions.size()) return false;
    for (std::size_t i = 0; i < declared.dimensions.size(); ++i) {
      const bool open = declared.dimensions[i] == 0 || defined.dimensions[i] == 0;
      if (!open && declared.dimensions[i] != defined.dimensions[i]) return false;
    }
    return true;
  }

  void duplicate(std::string_view what, std::string_view name, std::uint32_t line) {
    report("duplicate-name", format_text("{} '{}' has a name that is already taken", what, name),
           line)
        .details.emplace_back("rule: names are unique within their scope");
  }

  struct ScopedName {
    std::string_view text;
    std::uint32_t scope = 0;
    bool numbered = false;  // `r<4>` declares r0 to r3, not r
    bool operator==(const ScopedName&) const = default;
  };
  struct ScopedHash {
    std::size_t operator()(const ScopedName& n) const noexcept {
      return std::hash<std::string_view>{}(n.text) * 31 + n.scope * 2 + (n.numbered ? 1 : 0);
    }
  };

  void function_names(const Function& f) {
    Scratch scratch;
    std::pmr::unordered_map<ScopedName, const RegisterDecl*, ScopedHash> seen(&scratch);
    const auto add = [&](std::string_view name, std::uint32_t scope, std::uint32_t line,
                         std::string_view what, const RegisterDecl* decl) {
      const ScopedName key{name, scope, decl != nullptr && decl->numbered};
      if (!seen.emplace(key, decl).second) duplicate(what, name, line);
    };
    for (const auto* list : {&f.returns, &f.parameters}) {
      for (const Variable& v : *list) {
        if (v.space != Space::Register && module_.text(v.name) != "_") {
          add(module_.text(v.name), 0, v.line, "parameter", nullptr);
        }
      }
    }
    for (const RegisterDecl& decl : f.registers) {
      if (module_.text(decl.name) != "_") {
        add(module_.text(decl.name), decl.scope, decl.line, "register", &decl);
      }
    }
    for (const Variable& v : f.variables)
      add(module_.text(v.name), v.scope, v.line, "variable", nullptr);
    // `%r3` beside `%r<10>` is the same register declared twice.
    for (const RegisterDecl& decl : f.registers) {
      if (decl.numbered) continue;
      const std::string_view name = module_.text(decl.name);
      const std::size_t digits = name.find_last_not_of("0123456789") + 1;
      if (digits == name.size() || name.size() - digits > 9) continue;
      const auto at = seen.find({name.substr(0, digits), decl.scope, true});
      if (at == seen.end()) continue;
      if (parse_number<std::uint32_t>(name.substr(digits)).value_or(kNone) < at->second->count) {
        duplicate("register", name, decl.line);
      }
    }
    labels(f);
  }

  static bool ends_in_digit(std::string_view name) {
    return !name.empty() && name.back() >= '0' && name.back() <= '9';
  }

  // ptxas 13.0 accepts `.reg .b32 %a1<14>`, but resolves `%a13` as number 13 of `%a` only.
  void unusable_prefixes(const Function& f) {
    std::vector<bool> unusable(f.registers.size(), false);
    bool any = false;
    for (std::size_t i = 0; i < f.registers.size(); ++i) {
      const RegisterDecl& decl = f.registers[i];
      unusable[i] = decl.numbered && ends_in_digit(module_.text(decl.name));
      any = any || unusable[i];
    }
    if (!any) return;
    for (const Instruction& s : f.body) {
      const auto refuse = [&](Register reg) {
        const auto decl = reg.decl.value;
        if (decl < unusable.size() && unusable[decl]) unusable_prefix(f.registers[decl], reg, s);
        if (decl < unusable.size()) unusable[decl] = false;  // reported
      };
      if (s.guard.present()) refuse(s.guard.predicate);
      for (const Operand& o : f.operands_of(s)) {
        if (o.kind == OperandKind::Register || o.base == OperandKind::Register)
          refuse(o.as_register());
        if (o.kind != OperandKind::Vector && o.kind != OperandKind::List) continue;
        for (const Operand& element : f.elements(o)) {
          if (element.kind == OperandKind::Register) refuse(element.as_register());
        }
      }
    }
  }

  void unusable_prefix(const RegisterDecl& decl, Register reg, const Instruction& s) {
    const std::string prefix(module_.text(decl.name));
    const std::string name = prefix + std::to_string(reg.index);
    const std::size_t digits = name.find_last_not_of("0123456789") + 1;
    report("undefined-register",
           "register '" + name + "' is not declared by '" + prefix + "<" +
               std::to_string(decl.count) + ">', whose prefix ends in a digit",
           s,
           "end the prefix in another character: '" + prefix + "_<" + std::to_string(decl.count) +
               ">'");
    auto& details = findings_.back().details;
    details.insert(details.begin() + 1, "rule: all digits at the end of a name are its number: '" +
                                            name + "' is number " + name.substr(digits) + " of '" +
                                            name.substr(0, digits) + "'");
  }

  void labels(const Function& f) {
    placed_.assign(f.labels.size(), false);
    Scratch scratch;
    std::pmr::unordered_set<ScopedName, ScopedHash> seen(&scratch);
    for (const Instruction& s : f.body) {
      const bool table = s.kind == StatementKind::BranchTargets ||
                         s.kind == StatementKind::CallTargets ||
                         s.kind == StatementKind::CallPrototype;
      if (s.kind != StatementKind::Label && !table) continue;
      const Operand& o = f.operands_of(s)[0];
      const Label& label = f.labels[o.id];
      if (!seen.insert({module_.text(label.name), label.scope, false}).second) {
        duplicate("label", module_.text(label.name), s.line);
      }
      placed_[o.id] = true;
    }
  }

  void labels_placed(const Function& f, const Instruction& s) {
    for (const Operand& o : f.operands_of(s)) {
      if (o.kind != OperandKind::Label || placed_[o.id]) continue;
      report("undefined-symbol",
             format_text("label '{}' is not defined in '{}'", module_.text(f.labels[o.id].name),
                         module_.text(f.name)),
             s, "define the label, or branch to a defined one");
    }
  }

  // Functions ---------------------------------------------------------------------------------

  void function(std::size_t index) {
    const Function& f = module_.functions[index];
    function_ = &f;
    for (const auto* list : {&f.returns, &f.parameters}) {
      for (const Variable& parameter : *list) {
        check_variable(parameter);
        declaration(parameter, !f.entry);
      }
    }
    for (const Directive& directive : f.directives) {
      const DirectiveInfo& row = info(directive.kind);
      above_zero(f, directive);
      const Requirement& r = row.requirement;
      if (offers(target_, r) && !(module_.version < r.version)) continue;
      const TargetFault found =
          judge("'." + std::string(row.text) + "'", {&r, 1}, target_, module_.version);
      report(found.rule, found.message, f.line);
    }
    if (!f.declaration) {
      function_names(f);
      for (const Variable& v : f.variables) {
        check_variable(v);
        declaration(v, false);
      }
      for (const RegisterDecl& decl : f.registers)
        needs(judge(decl, target_, module_.version), decl.line);
      unusable_prefixes(f);
      fine_.fill(nullptr);
      EarlierBody earlier;
      if (before_ != nullptr) earlier = EarlierBody(module_, *before_, index);
      for (const Instruction& s : f.body) {
        if (earlier.has(s)) {
          labels_placed(f, s);
        } else {
          statement(f, s);
        }
      }
    }
    function_ = nullptr;
  }

  void needs(TargetFault fault, std::uint32_t line) {
    if (target_.sm != 0 && !fault.rule.empty()) report(fault.rule, std::move(fault.message), line);
  }

  void check_variable(const Variable& v) {
    if (v.alignment != 0 && (v.alignment & (v.alignment - 1)) != 0) {
      report("bad-operand",
             format_text("alignment of '{}' is {}, which is not a power of two",
                         module_.text(v.name), count_text(v.alignment, "byte")),
             v.line);
    }
    needs(judge(v, target_, module_.version), v.line);
    for (const InitialValue& piece : v.initial) {
      if (piece.symbol.value != kNone) resolved(piece.symbol, v.line, nullptr);
    }
  }

  // What ptxas 13.0 refuses to declare. `open_ended`: a parameter may be of any length.
  void declaration(const Variable& v, bool open_ended) {
    const std::string_view subject = module_.text(v.name);
    const bool incomplete =
        std::find(v.dimensions.begin(), v.dimensions.end(), 0u) != v.dimensions.end();
    if (incomplete && v.linkage != Linkage::Extern && !v.initialised && !open_ended) {
      report("bad-declaration",
             format_text("'{}' is an array without a size, and not .extern", subject), v.line)
          .details = {"rule: the definition of an array has a size",
                      "cure: write the number of elements, or initial values"};
    } else if (incomplete && std::count(v.dimensions.begin() + 1, v.dimensions.end(), 0u) != 0) {
      report("bad-declaration",
             format_text("'{}' lacks the size of a dimension after the first", subject), v.line)
          .details = {"rule: only the first dimension of an array may be omitted",
                      "cure: write the number of elements"};
    }
    if (v.space == Space::Param && v.vector > 1 && v.dimensions.empty()) {
      report("bad-declaration",
             format_text("'{}' is a .v{} in .param, which holds no vectors", subject, v.vector),
             v.line)
          .details = {"rule: parameters are scalars or arrays",
                      "cure: declare an array of bytes with the vector's alignment"};
    }
  }

  void above_zero(const Function& f, const Directive& directive) {
    switch (directive.kind) {
      case DirectiveKind::maxntid:
      case DirectiveKind::reqntid:
      case DirectiveKind::maxnreg:
      case DirectiveKind::minnctapersm:
        break;
      default:
        return;
    }
    const std::string_view text = info(directive.kind).text;
    for (std::size_t i = 0; i < directive.count; ++i) {
      if (directive.values[i] != 0) continue;
      report("bad-declaration", format_text("number {} of '.{}' is 0", i + 1, text), f.line)
          .details = {format_text("rule: the numbers after '.{}' are at least 1", text),
                      "cure: write 1 for an unused dimension"};
      return;
    }
  }

  void statement(const Function& f, const Instruction& s) {
    switch (s.kind) {
      case StatementKind::Unknown:
        if (!wrong_order(s)) unknown(f, s);
        return;
      case StatementKind::BranchTargets:
      case StatementKind::CallTargets:
      case StatementKind::Instruction:
        break;
      default:
        return;
    }
    // Most opcodes were checked before and found legal.
    const Instruction*& alike = fine_[place_of_opcode(s)];
    const bool fine = alike != nullptr && s.kind == StatementKind::Instruction &&
                      alike->op == s.op && alike->modifiers == s.modifiers;
    if (fine && alike_in_places(f, s, *alike)) return;
    labels_placed(f, s);
    bool names_known = true;
    const auto operands = f.operands_of(s);
    const OperandSpecs specs(f, s);
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const OperandSpec* spec = specs[i];
      const bool in_register =
          spec != nullptr &&
          (spec->role == OperandRole::Destination || spec->role == OperandRole::RegisterSource ||
           spec->role == OperandRole::Predicate || spec->role == OperandRole::Source);
      names_known = operand_names(f, s, operands[i], in_register) && names_known;
    }
    if (s.kind != StatementKind::Instruction) return;
    bool places_fine = false;
    if (names_known) {
      InstructionFault fault = check_operands(module_, f, s, specs, !fine);
      places_fine = fault.rule.empty();
      if (!places_fine) {
        report(fault.rule, std::move(fault.message), s, operand_cure(fault.rule));
      }
    }
    if (target_.sm == 0) return;
    const bool special = operands_have_needs(f, s);
    if (fine && !special) {
      if (places_fine) alike = &s;
      return;
    }
    TargetFault fault = judge(f, s, target_, module_.version);
    if (fault.rule.empty() && places_fine && !special) alike = &s;
    if (fault.rule == "target-lacks") {
      report(fault.rule, std::move(fault.message), s,
             "build for a target that has it, or avoid the instruction");
    } else if (fault.rule == "version-too-low") {
      report(fault.rule, std::move(fault.message), s, "raise .version to " + text(fault.lowest));
    }
  }

  // Whether each operand is such as the other one's of that place: a register of the same
  // declaration, or another constant, if values are not judged. What holds of one instruction then
  // holds of the other.
  static bool alike_in_places(const Function& f, const Instruction& s, const Instruction& other) {
    if (s.operand_count != other.operand_count || s.guard.present() != other.guard.present() ||
        (s.guard.present() && s.guard.predicate.decl != other.guard.predicate.decl))
      return false;
    const auto ours = f.operands_of(s), theirs = f.operands_of(other);
    for (std::size_t i = 0; i < ours.size(); ++i) {
      const Operand &a = ours[i], &b = theirs[i];
      if (a.kind != b.kind || a.base != b.base || a.component != b.component ||
          a.negated != b.negated || a.joined != b.joined || a.in_braces != b.in_braces)
        return false;
      switch (a.kind) {
        case OperandKind::Register:
          if (a.id != b.id) return false;
          break;
        case OperandKind::Memory:
          if (a.base != OperandKind::Register || a.id != b.id) return false;
          break;
        case OperandKind::Integer:
          if (a.value != b.value && judges_constants(s.op)) return false;
          break;
        case OperandKind::Float32:
        case OperandKind::Float64:
          break;
        default:
          return false;
      }
    }
    return true;
  }

  static std::size_t place_of_opcode(const Instruction& s) {
    std::size_t sum = static_cast<std::size_t>(s.op);
    for (std::size_t i = 0; i < info(s.op).slot_count; ++i)
      sum += static_cast<std::size_t>(s.modifiers[i]) * (2 * i + 3);
    return sum % kOpcodesKept;
  }

  // The certain reason why no row matches an opcode, if there is one.
  bool wrong_order(const Instruction& s) {
    const OrderFault fault = order_fault(first_word(module_.text(s.text)));
    if (!fault.found()) return false;
    report("bad-operand", fault.message, s, {});
    findings_.back().details.push_back("rule: " + fault.rule);
    findings_.back().details.push_back("cure: " + fault.cure);
    return true;
  }

  void unknown(const Function& f, const Instruction& s) {
    UnknownFault fault = check_unknown(module_, f, s);
    const bool certain = fault.rule != "unknown-instruction";
    report(fault.rule, std::move(fault.message), s, fault.cure,
           certain ? Severity::Error : Severity::Warning);
  }

  static std::string_view operand_cure(std::string_view rule) {
    return rule == "type-mismatch"
               ? "use a register of that type or an untyped .bN of its width, or convert with cvt"
               : "see the instruction's operands in docs/isa.md";
  }

  static std::string_view first_word(std::string_view text) {
    return text.substr(0, text.find_first_of(" \t\n{[;"));
  }

  // `in_register`: only a register can be there, so that is what an unknown name was meant to
  // be.
  bool operand_names(const Function& f, const Instruction& s, const Operand& o, bool in_register) {
    switch (o.kind) {
      case OperandKind::Vector:
      case OperandKind::List: {
        bool known = true;
        for (const Operand& element : f.elements(o)) {
          known = operand_names(f, s, element, in_register) && known;
        }
        return known;
      }
      case OperandKind::Symbol:
        return resolved({o.id}, s.line, &s, in_register);
      case OperandKind::Memory:
        return o.base != OperandKind::Symbol || resolved({o.id}, s.line, &s);
      default:
        return true;
    }
  }

  bool resolved(SymbolId id, std::uint32_t line, const Instruction* s, bool in_register = false) {
    const Symbol& symbol = module_.symbols[id.value];
    if (symbol.kind != SymbolKind::Unresolved) return true;
    const std::string name(module_.text(symbol.name));
    const bool is_register = in_register || name.starts_with('%');
    const std::string_view rule = is_register ? "undefined-register" : "undefined-symbol";
    std::string message = (is_register ? "register '" : "'") + name + "' is not declared";
    if (s == nullptr) {
      report(rule, std::move(message), line);
    } else {
      report(rule, std::move(message), *s,
             is_register ? "declare it with .reg, or raise the count of its declaration"
                         : "declare it before use, or correct the name");
    }
    return false;
  }

  // Entries -----------------------------------------------------------------------------------

  void entries() {
    std::string known;
    bool wanted_found = false;
    bool any_entry = false;
    bool any_function = false;
    for (const Function& f : module_.functions) {
      any_function = true;
      if (f.declaration) continue;
      if (!f.entry) continue;
      any_entry = true;
      known += format_text("{}{}", known.empty() ? "" : ", ", module_.text(f.name));
      wanted_found = wanted_found || module_.text(f.name) == options_.entry;
    }
    if (!any_entry) {
      // A module of device functions or data, to be linked, is legal PTX.
      const bool library = options_.entry.empty() && (any_function || !module_.variables.empty());
      report("missing-entry",
             !library       ? "the module has no .entry to launch"
             : any_function ? "the module has device functions but no .entry to launch"
                            : "the module has data but no .entry to launch",
             0, library ? Severity::Note : Severity::Error);
    } else if (!options_.entry.empty() && !wanted_found) {
      report("entry-name",
             format_text("there is no entry '{}'; the module has {}", options_.entry, known), 0);
    }
  }

  const Module& module_;
  const VerifyOptions& options_;
  const std::vector<bool>* bodies_;  // which functions are looked at, or all
  const Module* before_;  // the module when nothing was found wrong with these, or nullptr
  TargetName target_;
  const Function* function_ = nullptr;
  // Instructions of the function that nothing was found wrong with; by opcode, as many as fit.
  static constexpr std::size_t kOpcodesKept = 128;
  std::array<const Instruction*, kOpcodesKept> fine_{};
  std::vector<bool> placed_;  // labels of the function that are placed
  std::vector<Finding> findings_;
};

}  // namespace

std::vector<Finding> verify(const Module& module, const VerifyOptions& options) {
  return Verifier(module, options).run();
}

std::vector<Finding> verify_functions(const Module& module, const std::vector<bool>& which,
                                      const Module& before) {
  const VerifyOptions options;
  return Verifier(module, options, &which, &before).run();
}

}  // namespace ptxgen::inline v0::ptx
