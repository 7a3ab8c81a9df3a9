// src/builder/kernel_builder.cpp - parameters, arrays, directives, and finishing a kernel
#include "ptxgen/builder/kernel_builder.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "builder/moves.hpp"
#include "ptxgen/ptx/printer.hpp"
#include "ptxgen/ptx/verifier.hpp"
#include "support/count.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0 {

BuiltKernel::BuiltKernel(ptx::Module module, Signature signature)
    : module_(std::move(module)), signature_(std::move(signature)) {}
BuiltKernel::BuiltKernel(const BuiltKernel& other) = default;
BuiltKernel::BuiltKernel(BuiltKernel&& other) noexcept = default;
BuiltKernel& BuiltKernel::operator=(const BuiltKernel& other) = default;
BuiltKernel& BuiltKernel::operator=(BuiltKernel&& other) noexcept = default;
BuiltKernel::~BuiltKernel() = default;

std::string_view BuiltKernel::name() const noexcept {
  return module_.text(module_.functions.front().name);
}
std::string BuiltKernel::ptx() const { return ptx::print(module_); }

namespace {

// An assembler may contract a mul and an add that name no rounding, whatever our passes do.
void write_forbidden_roundings(ptx::Function& f) {
  for (ptx::Instruction& s : f.body) {
    if (s.kind != ptx::StatementKind::Instruction || s.has(ptx::Field::Rounding)) continue;
    if ((s.contract == Contract::Default ? f.contract : s.contract) != Contract::Forbid) continue;
    const std::string_view mnemonic = ptx::info(s.op).mnemonic;
    if (mnemonic != "mul" && mnemonic != "add" && mnemonic != "sub") continue;
    s.set(ptx::Field::Rounding, ptx::Modifier::rn);  // integers have no place for it
  }
}

}  // namespace

KernelBuilder::KernelBuilder(Name name, std::string_view target) : Control(name, target) {}

std::uint32_t KernelBuilder::check_block_size(std::string_view method, std::uint32_t threads,
                                              Site site) {
  if (threads == 0 || threads > 1024 || threads % 32 != 0) {
    fail("block-size",
         format_text("{} over {} threads; a block has a multiple of 32, up to 1024", method,
                     threads),
         site);
  }
  return threads / 32;
}

KernelBuilder::~KernelBuilder() = default;

// ---- parameters

void KernelBuilder::declare(const Name& name, ptx::Type type, bool pointer, ptx::Space space,
                            ptx::Type element) {
  check_open(name.site);
  check_new_name(name.text, "parameter", name.site);
  ptx::Function& f = function();
  Parameter row;
  row.name = name.text;
  row.type = type;
  row.size = ptx::bytes(type);
  row.pointer = pointer;
  row.space = space;
  row.element = element;
  const std::uint32_t end =
      parameters_.empty() ? 0 : parameters_.back().offset + parameters_.back().size;
  row.offset = (end + row.size - 1) / row.size * row.size;
  ptx::Variable variable;
  variable.name = module_.names.intern(name.text);
  variable.space = ptx::Space::Param;
  variable.type = type;
  const auto index = static_cast<std::uint32_t>(f.parameters.size());
  module_.symbols.push_back({variable.name, ptx::SymbolKind::Parameter, 0, index});
  f.parameters.push_back(std::move(variable));
  // Rows of rolled-back declarations remain; the function's list is what counts.
  parameters_.resize(index);
  parameters_.push_back(std::move(row));
}

Value<u64> KernelBuilder::tensor_map_address(const Name& name) {
  constexpr std::uint32_t kBytes = 128;
  constexpr std::uint32_t kAlignment = 64;
  detail::Transaction transaction(*this);
  declare(name, ptx::Type::b8, false, ptx::Space::Generic, ptx::Type::b8);
  ptx::Variable& variable = function().parameters.back();
  variable.alignment = kAlignment;
  variable.dimensions = {kBytes};
  Parameter& row = parameters_.back();
  row.type = ptx::Type::none;
  row.size = kBytes;
  row.offset = (row.offset + kAlignment - 1) / kAlignment * kAlignment;
  const ptx::Operand symbol =
      ptx::Operand::symbol({static_cast<std::uint32_t>(module_.symbols.size() - 1)});
  const ptx::Register in_param =
      result({ptx::Op::mov, {ptx::Modifier::type_b64}}, detail::RegisterClass::rd,
             {{this, symbol, name.site}}, name.site);
  const ptx::Register address = result(
      {ptx::Op::cvta, {ptx::Modifier::param, ptx::Modifier::type_u64}}, detail::RegisterClass::rd,
      {{this, ptx::Operand::reg(in_param), name.site}}, name.site);
  transaction.keep();
  return {this, address};
}

std::size_t KernelBuilder::find_param(const Name& name) {
  for (std::size_t i = 0; i < function().parameters.size(); ++i) {
    if (parameters_[i].name == name.text) return i;
  }
  std::string there;
  for (std::size_t i = 0; i < function().parameters.size(); ++i) {
    there += (there.empty() ? "" : ", ") + parameters_[i].name;
  }
  fail("undefined-symbol",
       "the kernel has no parameter '" + std::string(name.text) + "'; it has " +
           (there.empty() ? "none" : there),
       name.site);
}

namespace {

std::string parameter_type(const Parameter& p) {
  if (!p.pointer) return std::string(ptx::name(p.element));
  return "pointer to " + std::string(ptx::name(p.space)) +
         (p.space == ptx::Space::Generic ? "" : " ") + std::string(ptx::name(p.element));
}

ptx::SymbolId parameter_symbol(const ptx::Module& module, std::size_t index) {
  for (std::size_t i = 0; i < module.symbols.size(); ++i) {
    const ptx::Symbol& symbol = module.symbols[i];
    if (symbol.kind == ptx::SymbolKind::Parameter && symbol.index == index) {
      return {static_cast<std::uint32_t>(i)};
    }
  }
  return {};
}

}  // namespace

ptx::Register KernelBuilder::value_param(const Name& name, ptx::Type type, ptx::Type element,
                                         detail::RegisterClass register_class) {
  const std::size_t index = find_param(name);
  const Parameter& row = parameters_[index];
  if (row.pointer || row.element != element) {
    fail("type-mismatch",
         "parameter '" + row.name + "' is " + parameter_type(row) + " and is read as " +
             std::string(ptx::name(element)),
         name.site);
  }
  return result({ptx::Op::ld, {ptx::Modifier::param, ptx::as_modifier(type)}}, register_class,
                {{this, ptx::Operand::memory(parameter_symbol(module_, index)), name.site}},
                name.site);
}

detail::PointerData KernelBuilder::pointer_param(const Name& name, ptx::Space space,
                                                 ptx::Modifier modifier, ptx::Type element) {
  const std::size_t index = find_param(name);
  const Parameter& row = parameters_[index];
  if (!row.pointer || row.element != element || row.space != space) {
    Parameter wanted = row;
    wanted.pointer = true;
    wanted.space = space;
    wanted.element = element;
    fail("type-mismatch",
         "parameter '" + row.name + "' is " + parameter_type(row) + " and is read as " +
             parameter_type(wanted),
         name.site);
  }
  detail::Transaction transaction(*this);
  ptx::Register base = result(
      {ptx::Op::ld, {ptx::Modifier::param, ptx::Modifier::type_u64}}, detail::RegisterClass::rd,
      {{this, ptx::Operand::memory(parameter_symbol(module_, index)), name.site}}, name.site);
  if (space != ptx::Space::Generic) {
    base =
        result({ptx::Op::cvta_to, {ptx::Modifier::to, modifier, ptx::Modifier::type_u64}},
               detail::RegisterClass::rd, {{this, ptx::Operand::reg(base), name.site}}, name.site);
  }
  transaction.keep();
  return {this, base, 0, 0};
}

// ---- arrays

detail::PointerData KernelBuilder::declare_array(ptx::Space space, ptx::Type type, unsigned bytes,
                                                 std::uint64_t count, std::string_view name,
                                                 std::uint32_t alignment, ptx::SymbolId& symbol,
                                                 Site site) {
  check_open(site);
  std::string numbered;
  if (name.empty()) {
    numbered = std::string(space == ptx::Space::Shared ? "shared" : "local") +
               std::to_string(function().variables.size());
    name = numbered;
  }
  check_new_name(name, "array", site);
  const std::uint64_t max =
      space == ptx::Space::Shared ? target_->shared_per_block : std::uint64_t{512} << 10;
  std::uint64_t before = 0;
  for (const ptx::Variable& v : function().variables) {
    if (v.space == space) before += ptx::size_in_bytes(v);
  }
  if (count == 0 || count > max / bytes || before + count * bytes > max) {
    fail("too-large",
         "array '" + std::string(name) + "' of " + count_text(count, "element") + " of " +
             count_text(bytes, "byte") +
             (before != 0 ? ", beside " + count_text(before, "byte") : "") + ": " +
             (space == ptx::Space::Shared
                  ? "a block of " + module_.target + " has 1 to " + count_text(max, "byte") +
                        " of static shared memory; more is dynamic_shared()"
                  : "a thread has 1 to " + count_text(max, "byte") + " of local memory"),
         site);
  }
  check_alignment(alignment, bytes, site);
  detail::Transaction transaction(*this);
  ptx::Variable variable;
  variable.name = module_.names.intern(name);
  variable.space = space;
  variable.type = type;
  variable.alignment = alignment;
  variable.dimensions.push_back(count);
  const auto index = static_cast<std::uint32_t>(function().variables.size());
  module_.symbols.push_back({variable.name, ptx::SymbolKind::FunctionVariable, 0, index});
  function().variables.push_back(std::move(variable));
  symbol = {static_cast<std::uint32_t>(module_.symbols.size() - 1)};
  const ptx::Register base = symbol_address(symbol, site);
  transaction.keep();
  return {this, base, 0, alignment};
}

void KernelBuilder::check_alignment(std::uint32_t alignment, std::uint32_t bytes, Site site) {
  if (alignment == 0 || (alignment & (alignment - 1)) != 0 || alignment % bytes != 0) {
    fail("bad-operand",
         format_text("an alignment of {}: it must be a power of two and a multiple of the "
                     "element's {}",
                     count_text(alignment, "byte"), bytes),
         site);
  }
}

detail::PointerData KernelBuilder::dynamic_base(std::uint32_t bytes, std::uint32_t alignment,
                                                Site site) {
  check_open(site);
  check_alignment(alignment, bytes, site);
  detail::Transaction transaction(*this);
  if (dynamic_shared_ == ptx::kNone) {
    ptx::Variable variable;
    std::string name = "dynamic_shared";
    check_new_name(name, "array", site);
    variable.name = module_.names.intern(name);
    variable.space = ptx::Space::Shared;
    variable.type = ptx::Type::b8;
    variable.linkage = ptx::Linkage::Extern;
    variable.alignment = alignment;
    variable.dimensions.push_back(0);
    const auto index = static_cast<std::uint32_t>(module_.variables.size());
    module_.items.push_back({ptx::Item::Kind::Variable, index, {}, {}});
    module_.symbols.push_back({variable.name, ptx::SymbolKind::Variable, ptx::kNone, index});
    module_.variables.push_back(std::move(variable));
    dynamic_shared_ = static_cast<std::uint32_t>(module_.symbols.size() - 1);
  }
  ptx::Variable& memory = module_.variables[module_.symbols[dynamic_shared_].index];
  memory.alignment = std::max(memory.alignment, alignment);
  const ptx::Register base = symbol_address({dynamic_shared_}, site);
  transaction.keep();
  return {this, base, 0, alignment};
}

ptx::Register KernelBuilder::new_address(bool narrow, Site site) {
  check_open(site);
  return new_register(narrow ? detail::RegisterClass::r : detail::RegisterClass::rd);
}

// ---- directives

void KernelBuilder::directive(ptx::DirectiveKind kind, std::array<std::uint32_t, 3> values,
                              std::uint8_t count, Site site) {
  check_open(site);
  const ptx::DirectiveInfo& row = ptx::info(kind);
  const std::string text = "." + std::string(row.text);
  if (!ptx::offers(target_name_, row.requirement)) {
    fail("target-lacks",
         format_text("{} needs sm_{}; the target is {}", text, row.requirement.sm, module_.target),
         site);
  }
  if (std::find(values.begin(), values.begin() + count, 0u) != values.begin() + count) {
    fail("bad-operand", text + " takes positive numbers", site);
  }
  for (const ptx::Directive& other : function().directives) {
    if (other.kind == kind) fail("duplicate-name", text + " is given twice", site);
  }
  function().directives.push_back({kind, count, values});
}

void KernelBuilder::pragma(std::string_view text, Site site) {
  check_open(site);
  if (text.find_first_of("\"\n\\") != std::string_view::npos) {
    fail("bad-operand", "a pragma's text has no quotes, backslashes or line ends", site);
  }
  function().pragmas.push_back(module_.names.intern(text));
}

void KernelBuilder::contract(Contract how, Site site) {
  check_open(site);
  function().contract = how;
}

void KernelBuilder::set_guard(const In<pred>& p) {
  check_open(p.site);
  if (guard_.present()) fail("bad-operand", "guarded() does not nest: combine with &", p.site);
  const ptx::Operand operand = use(p);
  if (operand.kind != ptx::OperandKind::Register) {
    fail("bad-operand", "the condition of guarded() is a constant: decide it in C++", p.site);
  }
  guard_ = {operand.as_register(), operand.negated};
}

// ---- the end

BuiltKernel KernelBuilder::build(Site site) {
  if (!first_error_.empty()) throw first_error_.front();
  check_open(site);
  if (scope_ != 0 || guard_.present()) {
    fail("open-structure", "build() is called inside a body of if_, for_, while_ or guarded()",
         site);
  }
  for (std::size_t i = 0; i < function().labels.size(); ++i) {
    if (!function().labels[i].defined) {
      fail("undefined-symbol",
           "label '" + std::string(module_.names[function().labels[i].name]) +
               "' is branched to and never placed",
           label_sites_[i]);
    }
  }
  detail::Transaction transaction(*this);
  if (!ends_with_terminator()) ret(site);

  ptx::Function& f = function();
  write_forbidden_roundings(f);
  detail::fold_moves(f);
  if (!f.variables.empty()) {
    // Declarations of the kernel's arrays precede its statements. Those of raw() in a nested scope
    // stay in place.
    std::vector<bool> placed(f.variables.size());
    for (const ptx::Instruction& s : f.body) {
      if (s.kind == ptx::StatementKind::Variable) placed[s.variable] = true;
    }
    std::vector<ptx::Instruction> declarations;
    for (std::uint32_t i = 0; i < f.variables.size(); ++i) {
      if (placed[i]) continue;
      ptx::Instruction declaration;
      declaration.kind = ptx::StatementKind::Variable;
      declaration.variable = i;
      declarations.push_back(declaration);
    }
    f.body.insert(f.body.begin(), declarations.begin(), declarations.end());
  }
  module_.items.push_back({ptx::Item::Kind::Function, 0, {}, {}});
  try {
    module_.version = ptx::lowest_version(module_, module_.target);
  } catch (Error& error) {
    error.stage = Stage::Build;
    if (!error.site.known()) error.site = site;
    fail(error);
  }
  for (const Finding& finding : ptx::verify(module_)) {
    if (finding.severity != Severity::Error) continue;
    std::string message = finding.message;
    for (const std::string& more : finding.details) message += "; " + more;
    fail(finding.rule, std::move(message), finding.cpp.known() ? finding.cpp : site);
  }
  transaction.keep();
  Signature signature;
  parameters_.resize(f.parameters.size());
  signature.parameters = std::move(parameters_);
  return {take_module(), std::move(signature)};
}

}  // namespace ptxgen::inline v0
