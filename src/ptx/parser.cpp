// src/ptx/parser.cpp - entry points of the parser
#include "ptxgen/ptx/parser.hpp"

#include <string>
#include <utility>
#include <vector>

#include "ptx/parser_state.hpp"

namespace ptxgen::inline v0::ptx {

namespace {

// Restores the module unless `keep` was called.
class Restore {
 public:
  Restore(Module& module, std::uint32_t function)
      : module_(module),
        number_(function),
        names_(module.names),
        labels_(module.functions[function].labels),
        symbols_(module.symbols.size()) {
    const Function& f = module.functions[function];
    registers_ = f.registers.size();
    variables_ = f.variables.size();
    prototypes_ = f.prototypes.size();
    body_ = f.body.size();
    operands_ = f.operands.size();
    scopes_ = f.scopes;
  }
  ~Restore() {
    if (kept_) return;
    Function& f = module_.functions[number_];
    std::swap(module_.names, names_);
    std::swap(f.labels, labels_);
    // Shrinking only: nothing here allocates or throws.
    module_.symbols.resize(symbols_);
    f.registers.resize(registers_);
    f.variables.resize(variables_);
    f.prototypes.resize(prototypes_);
    f.body.resize(body_);
    f.operands.resize(operands_);
    f.scopes = scopes_;
  }
  Restore(const Restore&) = delete;
  Restore& operator=(const Restore&) = delete;

  void keep() noexcept { kept_ = true; }

 private:
  Module& module_;
  std::uint32_t number_;
  Names names_;
  std::vector<Label> labels_;
  std::size_t symbols_, registers_ = 0, variables_ = 0, prototypes_ = 0, body_ = 0, operands_ = 0;
  std::uint32_t scopes_ = 1;
  bool kept_ = false;
};

}  // namespace

Module parse(std::string_view text, std::string_view file) {
  Module module;
  module.file = file;
  reading::Parser(module, text, file).read_module();
  return module;
}

void parse_into(Module& module, std::uint32_t function, std::string_view statements) {
  Restore restore(module, function);
  reading::Parser(module, statements, "<raw PTX>").read_statements(function);
  restore.keep();
}

}  // namespace ptxgen::inline v0::ptx
