// src/ptx/parser_labels.cpp - scopes, labels, and existing functions
#include <algorithm>

#include "ptx/parser_state.hpp"

namespace ptxgen::inline v0::ptx::reading {

void Parser::bind(Unbind::Slot slot, std::uint32_t name, std::uint32_t value) {
  Name& entry = names_[name];
  std::uint32_t& bound = slot == Unbind::Slot::Exact    ? entry.exact
                         : slot == Unbind::Slot::Prefix ? entry.prefix
                         : slot == Unbind::Slot::Local  ? entry.local
                                                        : entry.ranged;
  bindings_.push_back({name, bound, slot});
  bound = value;
}

void Parser::unbind_to(std::size_t size) {
  for (; bindings_.size() > size; bindings_.pop_back()) {
    const Unbind& last = bindings_.back();
    Name& entry = names_[last.name];
    switch (last.slot) {
      case Unbind::Slot::Exact:
        entry.exact = last.previous;
        break;
      case Unbind::Slot::Prefix:
        entry.prefix = last.previous;
        break;
      case Unbind::Slot::Local:
        entry.local = last.previous;
        break;
      case Unbind::Slot::Ranged:
        entry.ranged = last.previous;
        break;
    }
  }
}

std::uint32_t Parser::add_symbol(std::uint32_t name, SymbolKind kind, std::uint32_t function,
                                 std::uint32_t index) {
  module_.symbols.push_back({id_of(name), kind, function, index});
  return static_cast<std::uint32_t>(module_.symbols.size() - 1);
}

void Parser::begin_function(std::uint32_t index) {
  function_ = index;
  body_ = &module_.functions[index];
  scopes_.clear();
  scopes_.push_back({0, bindings_.size(), ++clock_, cursor_.mark()});
  scope_ends_.assign(1, kNone);
  label_names_.clear();
  label_previous_.clear();
  references_.clear();
  odd_registers_ = 0;
  first_element_register_ = kNone;
  shared_label_names_ = false;
}

void Parser::end_function() {
  resolve_labels();
  for (const std::uint32_t name : label_names_) {
    names_[name].label = kNone;
    names_[name].undefined_label = kNone;
  }
  unbind_to(scopes_.front().bindings);
  scopes_.clear();
  function_ = kNone;
  body_ = nullptr;
}

std::uint32_t Parser::add_label(std::uint32_t name, bool defined) {
  Name& entry = names_[name];
  const std::uint32_t scope = defined ? scopes_.back().number : 0;
  // A label that the builder has created but not placed yet.
  if (built_ && defined) {
    for (std::uint32_t at = entry.label; at != kNone; at = label_previous_[at]) {
      Label& label = body_->labels[at];
      if (label.scope != scope || label.defined) continue;
      label.defined = true;
      return at;
    }
  }
  const auto index = static_cast<std::uint32_t>(body_->labels.size());
  body_->labels.push_back({id_of(name), scope, defined});
  label_names_.push_back(name);
  label_previous_.push_back(entry.label);
  if (entry.label != kNone) shared_label_names_ = true;
  entry.label = index;
  return index;
}

void Parser::resolve_labels() {
  scope_ends_[0] = body_->scopes;
  for (std::uint32_t& end : scope_ends_) end = std::min(end, body_->scopes);
  if (shared_label_names_) {
    resolve_shared_names();
  } else {
    resolve_one_by_one();
  }
}

void Parser::resolve_one_by_one() {
  for (const LabelReference& reference : references_) {
    const std::uint32_t label = names_[reference.name].label;
    const bool visible = label != kNone && body_->labels[label].scope <= reference.scope &&
                         reference.scope < scope_ends_[body_->labels[label].scope];
    resolve_label(reference, visible ? label : kNone);
  }
}

// Scopes are numbered in the order in which they begin, so a scope and those in it are a range of
// numbers. Labels and references of one name are visited in the order of their scopes; the stack
// holds the labels whose scopes are open at that point, the innermost on top.
void Parser::resolve_shared_names() {
  std::vector<std::uint32_t> labels(body_->labels.size());
  for (std::uint32_t i = 0; i < labels.size(); ++i) labels[i] = i;
  std::stable_sort(labels.begin(), labels.end(), [&](std::uint32_t a, std::uint32_t b) {
    const auto key = [&](std::uint32_t i) {
      return std::pair(label_names_[i], body_->labels[i].scope);
    };
    return key(a) < key(b);
  });
  std::stable_sort(references_.begin(), references_.end(),
                   [](const LabelReference& a, const LabelReference& b) {
                     return std::pair(a.name, a.scope) < std::pair(b.name, b.scope);
                   });
  std::vector<std::uint32_t> open;
  std::size_t next = 0;
  std::uint32_t name = kNone;
  for (const LabelReference& reference : references_) {
    if (reference.name != name) {
      name = reference.name;
      open.clear();
      while (next < labels.size() && label_names_[labels[next]] < name) ++next;
    }
    const auto close = [&](std::uint32_t scope) {
      while (!open.empty() && scope_ends_[body_->labels[open.back()].scope] <= scope)
        open.pop_back();
    };
    for (; next < labels.size() && label_names_[labels[next]] == name &&
           body_->labels[labels[next]].scope <= reference.scope;
         ++next) {
      const std::uint32_t scope = body_->labels[labels[next]].scope;
      close(scope);
      // Of several in one scope the first counts.
      if (open.empty() || body_->labels[open.back()].scope != scope) open.push_back(labels[next]);
    }
    close(reference.scope);
    resolve_label(reference, open.empty() ? kNone : open.back());
  }
}

void Parser::resolve_label(const LabelReference& reference, std::uint32_t label) {
  Operand& operand = body_->operands[reference.operand];
  if (label == kNone && reference.table) {
    // The table of an indirect call may be a variable.
    const std::uint32_t symbol = names_[reference.name].global;
    if (symbol != kNone && module_.symbols[symbol].kind == SymbolKind::Variable) {
      operand = Operand::symbol({symbol});
      return;
    }
  }
  if (label == kNone) {
    std::uint32_t& undefined = names_[reference.name].undefined_label;
    if (undefined == kNone) {
      undefined = static_cast<std::uint32_t>(body_->labels.size());
      body_->labels.push_back({id_of(reference.name), 0, false});
      label_names_.push_back(reference.name);
      label_previous_.push_back(kNone);
    }
    label = names_[reference.name].undefined_label;
  }
  operand.id = label;
}

void Parser::read_statements(std::uint32_t function) {
  built_ = true;
  take_over_symbols();
  begin_function(function);
  take_over_function(function);
  const std::size_t outer = scopes_.size();
  cursor_.kernel = module_.text(body_->name);
  for (;;) {
    cursor_.skip();
    if (cursor_.at_end()) break;
    if (*cursor_.at != '}') {
      read_statement();
    } else {
      if (scopes_.size() == outer) cursor_.fail_expected("a statement");
      ++cursor_.at;
      end_scope();
    }
  }
  if (scopes_.size() != outer) {
    cursor_.fail_expected("'}' at the end of a block (its '{' is in line " +
                          std::to_string(scopes_.back().mark.line) + ")");
  }
  end_function();
}

// Names of the module are copied, since its texts move when names are added.
void Parser::take_over_symbols() {
  std::size_t size = Cursor::kPadding;
  for (std::uint32_t i = 0; i < module_.names.size(); ++i) size += module_.names[{i}].size();
  taken_over_.reserve(size);
  std::vector<std::uint32_t> names(module_.names.size());
  for (std::uint32_t i = 1; i < module_.names.size(); ++i) {
    const std::size_t at = taken_over_.size();
    const std::string_view text = module_.names[{i}];
    taken_over_.append(text);
    names[i] = names_.find_or_add({taken_over_.data() + at, text.size()});
    names_[names[i]].id = {i};
  }
  taken_over_.append(Cursor::kPadding, '\0');
  for (std::uint32_t i = 0; i < module_.symbols.size(); ++i) {
    const Symbol& symbol = module_.symbols[i];
    const bool global = symbol.kind == SymbolKind::Unresolved ||
                        symbol.kind == SymbolKind::Variable || symbol.kind == SymbolKind::Function;
    std::uint32_t& bound = names_[names[symbol.name.value]].global;
    if (global && bound == kNone) bound = i;
  }
  taken_over_names_ = std::move(names);
}

// Binds what is visible at the end of a function's body.
// long because the scopes, symbols and labels of the body are bound in one pass
void Parser::take_over_function(std::uint32_t number) {
  const auto& names = taken_over_names_;
  scope_ends_.assign(body_->scopes, kNone);
  std::uint32_t begun = 0;
  for (const Instruction& statement : body_->body) {
    if (statement.kind == StatementKind::ScopeBegin) {
      begun = std::max(begun, statement.scope);
      scopes_.push_back({statement.scope, bindings_.size(), clock_, cursor_.mark()});
    } else if (statement.kind == StatementKind::ScopeEnd && scopes_.size() > 1) {
      scope_ends_[scopes_.back().number] = begun + 1;
      scopes_.pop_back();
    }
  }
  std::vector<std::uint32_t> symbol_of_parameter(body_->parameters.size(), kNone);
  std::vector<std::uint32_t> symbol_of_return(body_->returns.size(), kNone);
  std::vector<std::uint32_t> symbol_of_variable(body_->variables.size(), kNone);
  for (std::uint32_t i = 0; i < module_.symbols.size(); ++i) {
    const Symbol& symbol = module_.symbols[i];
    if (symbol.function != number) continue;
    auto* list = symbol.kind == SymbolKind::Parameter          ? &symbol_of_parameter
                 : symbol.kind == SymbolKind::Return           ? &symbol_of_return
                 : symbol.kind == SymbolKind::FunctionVariable ? &symbol_of_variable
                                                               : nullptr;
    if (list != nullptr && symbol.index < list->size()) (*list)[symbol.index] = i;
  }
  const auto bind_variables = [&](const std::vector<Variable>& list, SymbolKind kind,
                                  const std::vector<std::uint32_t>& known, std::uint32_t scope) {
    for (std::uint32_t i = 0; i < list.size(); ++i) {
      if (list[i].scope != scope || list[i].space == Space::Register) continue;
      const std::uint32_t name = names[list[i].name.value];
      if (list[i].range != 0) {
        bind(Unbind::Slot::Ranged, name, static_cast<std::uint32_t>(ranged_.size()));
        ranged_.push_back({number, i, list[i].range});
      } else {
        bind(Unbind::Slot::Local, name,
             known[i] != kNone ? known[i] : add_symbol(name, kind, number, i));
      }
    }
  };
  const auto bind_scope = [&](std::uint32_t scope) {
    if (scope == 0) {
      bind_variables(body_->returns, SymbolKind::Return, symbol_of_return, 0);
      bind_variables(body_->parameters, SymbolKind::Parameter, symbol_of_parameter, 0);
    }
    bind_variables(body_->variables, SymbolKind::FunctionVariable, symbol_of_variable, scope);
    for (std::uint32_t i = 0; i < body_->registers.size(); ++i) {
      const RegisterDecl& decl = body_->registers[i];
      if (decl.scope != scope) continue;
      const std::string_view text = module_.text(decl.name);
      bind(decl.numbered ? Unbind::Slot::Prefix : Unbind::Slot::Exact, names[decl.name.value], i);
      if (!text.empty() && is(text.back(), kDigit)) ++odd_registers_;
    }
  };
  for (const OpenScope& scope : scopes_) bind_scope(scope.number);
  for (std::uint32_t i = 0; i < body_->labels.size(); ++i) {
    const std::uint32_t name = names[body_->labels[i].name.value];
    label_names_.push_back(name);
    label_previous_.push_back(names_[name].label);
    if (names_[name].label != kNone) shared_label_names_ = true;
    names_[name].label = i;
  }
}

}  // namespace ptxgen::inline v0::ptx::reading
