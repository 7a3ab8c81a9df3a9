// src/driver/emulated/join.cpp - several PTX texts as one
#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "driver/emulated/link.hpp"
#include "ptxgen/ptx/parser.hpp"
#include "ptxgen/ptx/printer.hpp"
#include "ptxgen/ptx/target.hpp"
#include "ptxgen/support/error.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::driver::emulated {
namespace {

using ptx::Item;
using ptx::Linkage;
using ptx::Module;

/// The name, linkage and so on of a variable or function item.
struct Declared {
  ptx::NameId* name = nullptr;
  Linkage linkage = Linkage::None;
  bool defined = false;
  std::uint32_t line = 0;

  [[nodiscard]] bool is_private() const noexcept { return linkage == Linkage::None; }
};

Declared declared(Module& module, const Item& item) {
  if (item.kind == Item::Kind::Variable) {
    ptx::Variable& v = module.variables[item.index];
    return {&v.name, v.linkage, v.linkage != Linkage::Extern, v.line};
  }
  if (item.kind == Item::Kind::Function) {
    ptx::Function& f = module.functions[item.index];
    // A kernel is always visible.
    const bool hidden = f.linkage == Linkage::None && !f.entry;
    return {&f.name,
            hidden                       ? Linkage::None
            : f.linkage == Linkage::None ? Linkage::Visible
                                         : f.linkage,
            !f.declaration, f.line};
  }
  return {};
}

class Joiner {
 public:
  explicit Joiner(std::span<const LinkInput> inputs) {
    for (const LinkInput& input : inputs) modules_.push_back(ptx::parse(input.ptx, input.name));
  }

  std::string text() {
    find_definitions();
    std::string bodies;
    Module head = header();
    for (std::size_t m = 0; m < modules_.size(); ++m) {
      Module& module = modules_[m];
      choose_items(m);
      fit_calls(m);
      keep_private(m);
      drop_line_numbers(module);
      const Module empty = without_items(module);
      bodies += ptx::print(module).substr(ptx::print(empty).size());
    }
    return ptx::print(head) + bodies;
  }

 private:
  struct Definition {
    std::size_t module = 0;
    Linkage linkage = Linkage::None;
  };

  static Module without_items(const Module& module) {
    Module created;
    created.version = module.version;
    created.target = module.target;
    created.target_options = module.target_options;
    created.address_size = module.address_size;
    return created;
  }

  Module header() const {
    Module head = without_items(modules_.front());
    ptx::TargetName highest;
    (void)ptx::parse_target_name(head.target, highest);
    for (const Module& module : modules_) {
      const bool newer = module.version.major != head.version.major
                             ? module.version.major > head.version.major
                             : module.version.minor > head.version.minor;
      if (newer) head.version = module.version;
      ptx::TargetName target;
      if (!ptx::parse_target_name(module.target, target) || target.sm < highest.sm) continue;
      if (target.sm == highest.sm && target.variant == ptx::Variant::None) continue;
      highest = target;
      head.target = module.target;
    }
    return head;
  }

  void find_definitions() {
    for (std::size_t m = 0; m < modules_.size(); ++m) {
      Module& module = modules_[m];
      for (const Item& item : module.items) {
        const Declared found = declared(module, item);
        if (found.name == nullptr) continue;
        const std::string name(module.text(*found.name));
        if (found.is_private()) {
          ++users_[name];
          continue;
        }
        if (!found.defined) continue;
        const auto [at, added] = definitions_.emplace(name, Definition{m, found.linkage});
        if (added || at->second.module == m) continue;
        const bool both_strong =
            found.linkage == Linkage::Visible && at->second.linkage == Linkage::Visible;
        if (both_strong) {
          Error error(Stage::Load, "duplicate-name",
                      format_text("'{}' is defined by '{}' and by '{}'", name,
                                  modules_[at->second.module].file, module.file));
          error.file = module.file;
          error.line = found.line;
          throw error.refresh();
        }
        if (found.linkage == Linkage::Visible) at->second = {m, found.linkage};
      }
    }
    for (const auto& [name, definition] : definitions_) ++users_[name];
  }

  /// Without declarations that another module defines, and without `.file` and debug sections,
  /// whose numbers are valid in one module only.
  void choose_items(std::size_t m) {
    Module& module = modules_[m];
    std::erase_if(module.items, [&](const Item& item) {
      if (item.kind == Item::Kind::File || item.kind == Item::Kind::Section) return true;
      const Declared found = declared(module, item);
      if (found.name == nullptr || found.is_private()) return false;
      const auto at = definitions_.find(std::string(module.text(*found.name)));
      if (at == definitions_.end() || at->second.module == m) return false;
      // The declaration of a function may stay; it has the signature.
      return found.defined || item.kind == Item::Kind::Variable;
    });
  }

  /// Gives calls the results of the definition where a declaration has others: it returns nothing
  /// and the caller takes a result, or the other way round. ptxas refuses that in one text; CUDA's
  /// linker (nvJitLink 13.0) names it on its output and links, as results are in registers.
  void fit_calls(std::size_t m) {
    Module& module = modules_[m];
    for (ptx::Function& declaration : module.functions) {
      if (!declaration.declaration) continue;
      const auto at = definitions_.find(std::string(module.text(declaration.name)));
      if (at == definitions_.end() || at->second.module == m) continue;
      const Module& other = modules_[at->second.module];
      const ptx::Function* definition = other.find_function(at->first);
      if (definition == nullptr || declaration.returns.empty() == definition->returns.empty()) {
        continue;
      }
      // Results in registers (`.func (.reg .u32 r)`) are left to the decoder, which refuses the
      // call.
      if (!definition->returns.empty() && definition->returns.front().space != ptx::Space::Param) {
        continue;
      }
      const ptx::NameId unused = module.names.intern(format_text("{}$unused", at->first));
      if (declaration.returns.empty()) {
        declaration.returns = definition->returns;
        for (ptx::Variable& result : declaration.returns) result.name = unused;
      } else {
        declaration.returns.clear();
      }
      for (std::uint32_t f = 0; f < module.functions.size(); ++f) {
        fit_calls_of(module, f, declaration);
      }
    }
  }

  static void fit_calls_of(Module& module, std::uint32_t caller, const ptx::Function& callee) {
    ptx::Function& function = module.functions[caller];
    std::optional<ptx::Operand> unused;
    for (ptx::Instruction& statement : function.body) {
      if (!statement.is(ptx::Op::call)) continue;
      ptx::Operand& results = function.operands_of(statement)[0];
      const ptx::Operand& called = function.operands_of(statement)[1];
      if (called.kind != ptx::OperandKind::Symbol) continue;
      const ptx::Symbol& symbol = module.symbols[called.id];
      if (symbol.kind != ptx::SymbolKind::Function || symbol.name != callee.name) continue;
      if (callee.returns.empty()) {
        // What the caller takes is not written, as a GPU's register for it is not.
        results = {};
        results.kind = ptx::OperandKind::List;
        continue;
      }
      if (results.index != 0) continue;  // done for another declaration of the function
      if (!unused) unused = unused_result(module, caller, callee.returns.front());
      results.id = static_cast<std::uint32_t>(function.operands.size());
      results.index = 1;
      function.operands.push_back(*unused);
    }
    if (!unused) return;
    ptx::Instruction declared;
    declared.kind = ptx::StatementKind::Variable;
    declared.variable = static_cast<std::uint32_t>(function.variables.size() - 1);
    function.body.insert(function.body.begin(), declared);
  }

  /// A variable of a function for a result that it does not read.
  static ptx::Operand unused_result(Module& module, std::uint32_t caller, ptx::Variable result) {
    ptx::Function& function = module.functions[caller];
    result.scope = 0;
    module.symbols.push_back({result.name, ptx::SymbolKind::FunctionVariable, caller,
                              static_cast<std::uint32_t>(function.variables.size())});
    function.variables.push_back(std::move(result));
    return ptx::Operand::symbol(
        ptx::SymbolId{static_cast<std::uint32_t>(module.symbols.size() - 1)});
  }

  /// Renames local names of a module that other modules use too.
  void keep_private(std::size_t m) {
    Module& module = modules_[m];
    for (const Item& item : module.items) {
      const Declared found = declared(module, item);
      if (found.name == nullptr || !found.is_private()) continue;
      const std::string old(module.text(*found.name));
      if (users_[old] < 2) continue;
      const ptx::NameId before = *found.name;
      const ptx::NameId renamed = module.names.intern(format_text("{}$link{}", old, m + 1));
      const auto kind =
          item.kind == Item::Kind::Variable ? ptx::SymbolKind::Variable : ptx::SymbolKind::Function;
      *declared(module, item).name = renamed;
      for (ptx::Symbol& symbol : module.symbols) {
        if (symbol.kind == kind && symbol.name == before) symbol.name = renamed;
      }
      for (Item& alias : module.items) {
        if (alias.kind == Item::Kind::Alias && alias.text2 == before) alias.text2 = renamed;
      }
    }
  }

  static void drop_line_numbers(Module& module) {
    for (ptx::Function& function : module.functions) {
      std::erase_if(function.body, [](const ptx::Instruction& statement) {
        return statement.kind == ptx::StatementKind::Location;
      });
    }
  }

  std::vector<Module> modules_;
  std::map<std::string, Definition> definitions_;
  std::map<std::string, int> users_;  ///< inputs with a local definition of the name
};

}  // namespace

std::string join(std::span<const LinkInput> inputs) {
  return inputs.size() == 1 ? inputs.front().ptx : Joiner(inputs).text();
}

}  // namespace ptxgen::inline v0::driver::emulated
