// src/check/analyze/addresses.cpp - the rule shared-64bit-address
#include <string>

#include "check/analyze/rules.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::gates {

namespace {

using namespace ptx;
using analysis::Version;

/// Origins of an address.
enum Origin : std::uint8_t {
  kNothing = 0,
  kWindow = 1,     ///< an address in the shared window
  kGeneric = 2,    ///< cvta
  kOther = 4,      ///< an address in the window of another space
  kParameter = 8,  ///< a parameter of the kernel, which holds generic addresses
};

/// Follows addresses forward from their origins. Bits are only added, so the time is linear.
class Origins {
 public:
  explicit Origins(const RuleFindings& findings)
      : module_(findings.module()),
        function_(findings.function()),
        index_(findings.facts().index()),
        versions_(findings.facts().versions()),
        origins_(versions_.size()),
        definition_(versions_.size(), kNone) {
    std::vector<std::uint32_t> open;
    for (std::uint32_t v = 0; v < versions_.size(); ++v) {
      if (refresh(v)) open.push_back(v);
    }
    while (!open.empty()) {
      const std::uint32_t changed = open.back();
      open.pop_back();
      for (const analysis::VersionUse& use : versions_.uses(changed)) {
        if (use.version != kNone && refresh(use.version)) open.push_back(use.version);
        if (use.statement != kNone) refresh_written(use.statement, open);
      }
    }
  }

  [[nodiscard]] std::uint8_t of(std::uint32_t version) const noexcept { return origins_[version]; }
  /// The statement that created the generic address or loaded the parameter.
  [[nodiscard]] std::uint32_t definition(std::uint32_t version) const noexcept {
    return definition_[version];
  }

 private:
  void refresh_written(std::uint32_t statement, std::vector<std::uint32_t>& open) {
    analysis::for_each_access(
        function_, function_.body[statement], [&](const analysis::RegisterAccess& access) {
          if (!access.write) return;
          const std::uint32_t written = versions_.written(statement, index_.find(access.reg));
          if (written != kNone && refresh(written)) open.push_back(written);
        });
  }

  bool refresh(std::uint32_t v) {
    const Version& version = versions_[v];
    const std::uint8_t before = origins_[v];
    if (version.kind == Version::Kind::Phi) {
      for (const std::uint32_t input : versions_.inputs(v)) take(v, input);
    } else if (version.kind == Version::Kind::Write) {
      if (version.previous != kNone) take(v, version.previous);
      from_statement(v, version.statement);
    }
    return origins_[v] != before;
  }

  void take(std::uint32_t v, std::uint32_t from) {
    if (from == kNone) return;
    add(v, origins_[from], definition_[from]);
  }
  void add(std::uint32_t v, std::uint8_t bits, std::uint32_t definition) {
    if ((bits & (kGeneric | kOther | kParameter)) != 0 && definition_[v] == kNone)
      definition_[v] = definition;
    // Prefers an origin that is known to be wrong as the example.
    if ((bits & (kGeneric | kOther)) != 0 && (origins_[v] & (kGeneric | kOther)) == 0)
      definition_[v] = definition;
    origins_[v] |= bits;
  }

  void from_operand(std::uint32_t v, std::uint32_t statement, const Operand& operand) {
    if (operand.kind == OperandKind::Register) {
      const std::uint32_t reg = index_.find(operand.as_register());
      if (reg != kNone) take(v, versions_.read(statement, reg));
    } else if (operand.kind == OperandKind::Symbol) {
      add(v, space_of_symbol(operand.id) == Space::Shared ? kWindow : kOther, statement);
    }
  }

  Space space_of_symbol(std::uint32_t id) const {
    if (id >= module_.symbols.size()) return Space::Generic;
    const Symbol& symbol = module_.symbols[id];
    if (symbol.kind == SymbolKind::Variable) return module_.variables[symbol.index].space;
    if (symbol.kind == SymbolKind::FunctionVariable)
      return module_.functions[symbol.function].variables[symbol.index].space;
    return Space::Generic;
  }

  /// The kernel parameter that is loaded in full, or nullptr.
  const Variable* loaded_parameter(const Instruction& s) const {
    if (!function_.entry || !has(info(s.op).flags, Flag::ReadsMemory)) return nullptr;
    if (space_of(s.get(Field::Space)) != Space::Param || bits(s.type()) != 64) return nullptr;
    const auto operands = function_.operands_of(s);
    if (operands.size() != 2 || operands[1].kind != OperandKind::Memory ||
        operands[1].base != OperandKind::Symbol || operands[1].id >= module_.symbols.size())
      return nullptr;
    const Symbol& symbol = module_.symbols[operands[1].id];
    const bool known =
        symbol.kind == SymbolKind::Parameter && symbol.index < function_.parameters.size();
    return known ? &function_.parameters[symbol.index] : nullptr;
  }

  void from_statement(std::uint32_t v, std::uint32_t statement) {
    const Instruction& s = function_.body[statement];
    const auto operands = function_.operands_of(s);
    if (s.op == Op::cvta) return add(v, kGeneric, statement);
    if (s.op == Op::cvta_to || s.op == Op::mapa) {
      const bool shared = s.op == Op::mapa || space_of(s.get(Field::Space)) == Space::Shared;
      return add(v, shared ? kWindow : kOther, statement);
    }
    if (const Variable* parameter = loaded_parameter(s)) {
      // OpenCL passes shared memory to a kernel by its window address.
      const bool window = parameter->pointer && parameter->pointer_space == Space::Shared;
      return add(v, window ? kWindow : kParameter, statement);
    }
    // Other operands that may be the base address of the result.
    const std::string_view mnemonic = info(s.op).mnemonic;
    if (mnemonic == "mov" || mnemonic == "cvt" || mnemonic == "sub") {
      if (operands.size() > 1) from_operand(v, statement, operands[1]);
    } else if (mnemonic == "add" || mnemonic == "selp") {
      for (std::size_t i = 1; i < operands.size() && i < 3; ++i)
        from_operand(v, statement, operands[i]);
    } else if (mnemonic == "mad" && operands.size() > 3) {
      from_operand(v, statement, operands[3]);
    }
  }

  const Module& module_;
  const Function& function_;
  const analysis::RegisterIndex& index_;
  const analysis::Versions& versions_;
  std::vector<std::uint8_t> origins_;
  std::vector<std::uint32_t> definition_;
};

constexpr std::string_view kRule =
    "an address of a .shared access is in the shared window, which begins at 0; a generic "
    "address "
    "of the same byte is another number";

/// The base register of a `.shared` access, or nullptr.
const Operand* wide_base(const Function& function, const Instruction& s) {
  if (s.kind != StatementKind::Instruction || space_of(s.get(Field::Space)) != Space::Shared)
    return nullptr;
  constexpr Flag kMemory = Flag::ReadsMemory | Flag::WritesMemory;
  if (!has(info(s.op).flags, kMemory)) return nullptr;
  // The first address is the one in `.space`; that of `.from` follows it.
  for (const Operand& operand : function.operands_of(s)) {
    if (operand.kind != OperandKind::Memory) continue;
    const bool wide = operand.base == OperandKind::Register &&
                      bits(function.type_of(operand.as_register())) == 64;
    return wide ? &operand : nullptr;
  }
  return nullptr;
}

void report_wrong(RuleFindings& findings, std::uint32_t statement, const Operand& base,
                  std::uint8_t origin, std::uint32_t definition) {
  std::string message =
      format_text("this .shared access takes its address from {}", findings.name(base));
  const std::string place =
      definition == kNone ? "" : format_text(" at {}", findings.place(definition));
  if ((origin & kGeneric) != 0) {
    message += format_text(", a generic address made by cvta{}", place);
  } else if ((origin & kOther) != 0) {
    message += format_text(", an address outside of shared memory made{}", place);
  } else {
    message += format_text(", a pointer from the kernel's parameters loaded{}", place);
  }
  const bool shared = (origin & kGeneric) != 0;
  Finding& finding =
      findings.report(Severity::Error, "shared-64bit-address", statement, std::move(message), kRule,
                      shared ? "convert it with cvta.to.shared.u64, or leave .shared out"
                             : "access it as .global, or leave the space out");
  if (definition != kNone) finding.other_line = findings.at(definition).line;
}

}  // namespace

void find_shared_64bit_addresses(RuleFindings& findings) {
  const Function& function = findings.function();
  std::vector<std::uint32_t> accesses;
  for (std::uint32_t i = 0; i < function.body.size(); ++i) {
    if (wide_base(function, function.body[i]) != nullptr) accesses.push_back(i);
  }
  if (accesses.empty() || findings.module().address_size != 64) return;
  const Origins origins(findings);
  const analysis::RegisterIndex& index = findings.facts().index();
  const analysis::Versions& versions = findings.facts().versions();
  std::uint32_t first_wide = kNone;
  std::uint32_t wide = 0;
  for (const std::uint32_t statement : accesses) {
    const Operand& base = *wide_base(function, function.body[statement]);
    const std::uint32_t version = versions.read(statement, index.find(base.as_register()));
    const std::uint8_t origin = version == kNone ? std::uint8_t{kNothing} : origins.of(version);
    const bool wrong = (origin & (kGeneric | kOther)) != 0 || origin == kParameter;
    if (wrong) {
      report_wrong(findings, statement, base, origin, origins.definition(version));
    } else {
      if (first_wide == kNone) first_wide = statement;
      ++wide;
    }
  }
  if (first_wide == kNone) return;
  const Operand& base = *wide_base(function, function.body[first_wide]);
  std::string message = format_text(
      "this .shared access is addressed through the 64-bit register {}; 32 bits hold every address "
      "of the window",
      findings.name(base));
  if (wide > 1) message += format_text("; so are {} more in this function", wide - 1);
  findings.report(Severity::Note, "shared-64bit-address", first_wide, std::move(message), {},
                  "mov.u32 gives the address of a shared variable in half the registers");
}

}  // namespace ptxgen::inline v0::gates
