// src/analysis/diff/diff.cpp - what two modules do differently
#include "ptxgen/analysis/diff.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "analysis/diff/statements.hpp"
#include "ptxgen/ptx/printer.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::analysis {

using namespace ptx;

namespace {

// Of two declarations, of which one may be missing.
struct Declared {
  std::string text;
  std::uint32_t line = 0;
};
using Declarations = std::vector<std::pair<std::string, Declared>>;  // by name, in order

std::string initial_text(const Module& module, const Variable& variable) {
  std::string text;
  for (const InitialValue& value : variable.initial) {
    text += format_text(" {}:{:#x}", static_cast<int>(value.kind), value.value);
    if (value.symbol.value != kNone) text += module.text(module.symbols[value.symbol.value].name);
  }
  return text;
}

std::string text_of(const Module& module, const Variable& v) {
  std::string text = format_text(".{} ", ptx::name(v.space));
  text += format_text(".align {} ", natural_alignment(v));
  if (v.pointer) {
    text += format_text(".ptr.{} .align {} ", ptx::name(v.pointer_space), v.pointer_alignment);
  }
  if (v.vector > 1) text += format_text(".v{} ", v.vector);
  text += format_text(".{} {}", ptx::name(v.type), module.text(v.name));
  if (v.range != 0) text += format_text("<{}>", v.range);
  for (const std::uint64_t elements : v.dimensions) text += format_text("[{}]", elements);
  if (v.managed) text += ", managed";
  if (v.initialised) text += " =" + initial_text(module, v);
  return text;
}

Declarations declarations(const Module& module, const std::vector<Variable>& variables) {
  Declarations all;
  for (const Variable& v : variables) {
    all.emplace_back(module.text(v.name), Declared{text_of(module, v), v.line});
  }
  return all;
}

Declarations directives_of(const Function& function) {
  Declarations all;
  for (const Directive& directive : function.directives) {
    std::string text = format_text(".{}", info(directive.kind).text);
    for (std::uint8_t i = 0; i < directive.count; ++i) {
      text += format_text("{} {}", i == 0 ? "" : ",", directive.values[i]);
    }
    all.emplace_back(info(directive.kind).text, Declared{text, function.line});
  }
  return all;
}

/// Collects the changes of two modules.
class ModuleDiff {
 public:
  ModuleDiff(const Module& a, const Module& b) : a_(a), b_(b) {}

  std::vector<Change> run() {
    compare_heads();
    by_name(ChangeKind::Module, "", declarations(a_, a_.variables), declarations(b_, b_.variables));
    for (const auto& [from, to] : functions()) compare(from, to);
    for (Change& change : mixes_) changes_.push_back(std::move(change));
    return std::move(changes_);
  }

 private:
  void add(ChangeKind kind, std::string_view kernel, const Declared& a, const Declared& b,
           std::string what) {
    changes_.push_back(
        {kind, std::string(kernel), a.text, b.text, a.line, b.line, std::move(what)});
  }
  void compare_heads() {
    const auto check = [&](std::string_view what, const Declared& a, const Declared& b) {
      if (a.text != b.text) add(ChangeKind::Module, "", a, b, std::string(what) + " differs");
    };
    const auto version = [](const Module& m) {
      return Declared{format_text(".version {}.{}", m.version.major, m.version.minor),
                      m.version_line};
    };
    const auto target = [](const Module& m) {
      std::string text = ".target " + m.target;
      for (const std::string& option : m.target_options) text += ", " + option;
      return Declared{text, m.target_line};
    };
    const auto size = [](const Module& m) {
      return Declared{format_text(".address_size {}", m.address_size), 0};
    };
    check("PTX version", version(a_), version(b_));
    check("target", target(a_), target(b_));
    check("address size", size(a_), size(b_));
  }

  // Declarations with names, whose order does not count.
  void by_name(ChangeKind kind, std::string_view kernel, const Declarations& a,
               const Declarations& b) {
    std::map<std::string, std::pair<Declared, Declared>> all;
    for (const auto& [name, declared] : a) all[name].first = declared;
    for (const auto& [name, declared] : b) all[name].second = declared;
    for (const auto& [name, pair] : all) {
      const auto& [from, to] = pair;
      if (from.text == to.text) continue;
      add(kind, kernel, from, to,
          format_text("{} {}", name,
                      to.text.empty()     ? "removed"
                      : from.text.empty() ? "added"
                                          : "changed"));
    }
  }
  void in_order(std::string_view kernel, std::string_view of, const Declarations& a,
                const Declarations& b) {
    for (std::size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
      const Declared from = i < a.size() ? a[i].second : Declared{};
      const Declared to = i < b.size() ? b[i].second : Declared{};
      if (from.text == to.text) continue;
      add(ChangeKind::Parameters, kernel, from, to,
          format_text("{} {} {}", of, i + 1,
                      to.text.empty()     ? "removed"
                      : from.text.empty() ? "added"
                                          : "changed"));
    }
  }

  using Pair = std::pair<const Function*, const Function*>;
  std::vector<Pair> functions() const {
    std::vector<Pair> pairs;
    const auto bodies = [](const Module& m) {
      std::vector<const Function*> all;
      for (const Function& f : m.functions) {
        if (!f.declaration) all.push_back(&f);
      }
      return all;
    };
    std::vector<const Function*> rest = bodies(b_);
    std::size_t alone = 0;
    for (const Function* const from : bodies(a_)) {
      const auto found = std::find_if(rest.begin(), rest.end(), [&](const Function* to) {
        return b_.text(to->name) == a_.text(from->name);
      });
      pairs.emplace_back(from, found == rest.end() ? nullptr : *found);
      found == rest.end() ? static_cast<void>(++alone) : static_cast<void>(rest.erase(found));
    }
    if (alone == 1 && rest.size() == 1) {
      const auto open = std::find_if(pairs.begin(), pairs.end(),
                                     [](const Pair& pair) { return pair.second == nullptr; });
      open->second = rest[0];
      return pairs;
    }
    for (const Function* const to : rest) pairs.emplace_back(nullptr, to);
    return pairs;
  }

  void compare(const Function* from, const Function* to) {
    const auto declared = [](const Module& m, const Function* f) {
      if (f == nullptr) return Declared{};
      return Declared{format_text("{} {}", f->entry ? ".entry" : ".func", m.text(f->name)),
                      f->line};
    };
    const Declared head_a = declared(a_, from), head_b = declared(b_, to);
    const std::string kernel(from != nullptr ? a_.text(from->name) : b_.text(to->name));
    if (from == nullptr || to == nullptr) {
      return add(ChangeKind::Function, kernel, head_a, head_b,
                 from == nullptr ? "function added" : "function removed");
    }
    if (head_a.text != head_b.text) {
      add(ChangeKind::Function, kernel, head_a, head_b, "name or kind of the function changed");
    }
    in_order(kernel, "parameter", declarations(a_, from->parameters),
             declarations(b_, to->parameters));
    in_order(kernel, "result", declarations(a_, from->returns), declarations(b_, to->returns));
    by_name(ChangeKind::Resources, kernel, directives_of(*from), directives_of(*to));
    by_name(ChangeKind::Resources, kernel, declarations(a_, from->variables),
            declarations(b_, to->variables));
    compare_statements(a_, *from, b_, *to, changes_);
    compare_mix(kernel, *from, *to);
  }

  using Counts = std::map<std::string, std::pair<std::uint32_t, std::uint32_t>>;
  template <class Add>
  static void for_each_opcode(const Module& module, const Function& function, Add&& add) {
    for (const Instruction& s : function.body) {
      if (s.kind != StatementKind::Instruction) continue;
      Instruction bare = s;
      bare.guard = {};
      const std::string text = print(module, function, bare);
      add(text.substr(0, text.find_first_of(" ;")));
    }
  }
  void compare_mix(const std::string& kernel, const Function& from, const Function& to) {
    Counts counts;
    for_each_opcode(a_, from, [&](const std::string& opcode) { ++counts[opcode].first; });
    for_each_opcode(b_, to, [&](const std::string& opcode) { ++counts[opcode].second; });
    for (const auto& [opcode, both] : counts) {
      if (both.first == both.second) continue;
      mixes_.push_back({ChangeKind::Mix, kernel, std::to_string(both.first),
                        std::to_string(both.second), 0, 0, opcode});
    }
  }

  const Module& a_;
  const Module& b_;
  std::vector<Change> changes_, mixes_;
};

}  // namespace

std::string_view name(ChangeKind kind) noexcept {
  constexpr std::string_view kNames[] = {
      "module",        "function",     "parameters", "resources",   "barrier",
      "address_width", "access_width", "rounding",   "instruction", "operand",
      "order",         "control_flow", "mix"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::vector<Change> diff(const Module& a, const Module& b) { return ModuleDiff(a, b).run(); }

std::string to_text(const Change& change) {
  std::string text = change.kernel.empty() ? std::string("module") : change.kernel;
  if (change.kind == ChangeKind::Mix) {
    return text + format_text(": {} {} instead of {} times", change.what, change.b, change.a);
  }
  if (change.line_a != 0) text += format_text(": line {}", change.line_a);
  if (change.line_b != 0) {
    text += change.line_a != 0 ? format_text(" and {}", change.line_b)
                               : format_text(": line {} of the second", change.line_b);
  }
  text += ": " + change.what;
  if (!change.a.empty()) text += "\n  - " + change.a;
  if (!change.b.empty()) text += "\n  + " + change.b;
  return text;
}

}  // namespace ptxgen::inline v0::analysis
