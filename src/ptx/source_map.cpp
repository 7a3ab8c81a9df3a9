// src/ptx/source_map.cpp - source lines of statements from `.loc`
#include "ptxgen/ptx/source_map.hpp"

#include <cxxabi.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>

#include "support/numbers.hpp"

namespace ptxgen::inline v0::ptx {
namespace {

// Operands of a `.loc`, see StatementKind::Location.
constexpr std::size_t kFunctionName = 3;
constexpr std::size_t kInlinedAt = 4;
constexpr std::size_t kInlinedOperands = 7;

using Triple = std::array<std::uint64_t, 3>;  // file, line, column

Triple triple(std::span<const Operand> operands, std::size_t first) {
  return {operands[first].value, operands[first + 1].value, operands[first + 2].value};
}

bool is_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '$';
}

// The text after `label:` in a section, or empty.
std::string_view after_label(std::string_view section, std::string_view label) {
  for (std::size_t at = section.find(label); at != std::string_view::npos;
       at = section.find(label, at + 1)) {
    const std::size_t end = at + label.size();
    const bool found =
        (at == 0 || !is_name(section[at - 1])) && end < section.size() && section[end] == ':';
    if (found) return section.substr(end + 1);
  }
  return {};
}

// The string of `.b8` values up to the 0, without its first `skip` characters.
std::string string_of(std::string_view values, std::uint64_t skip) {
  std::string text;
  for (;;) {
    const std::size_t at = values.find_first_not_of(" \t\r\n,");
    if (at == std::string_view::npos) break;
    values.remove_prefix(at);
    if (values.starts_with(".b8")) {
      values.remove_prefix(3);
      continue;
    }
    const std::optional<unsigned> value = take_number<unsigned>(values);
    if (!value || *value == 0 || *value > 255) break;
    if (skip == 0) {
      text += static_cast<char>(*value);
    } else {
      --skip;
    }
  }
  return text;
}

std::string demangled(const std::string& name) {
  if (!name.starts_with("_Z")) return name;
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), &std::free);
  return status == 0 && text != nullptr ? std::string(text.get()) : name;
}

}  // namespace

SourceMap::SourceMap(const Module& module, const Function& function)
    : module_(&module), function_(&function) {
  // A function inlined in an inlined one: the `.loc` of its call site precedes its own and has an
  // `inlined_at` of its own.
  std::map<Triple, std::uint32_t> last;
  for (std::uint32_t i = 0; i < function.body.size(); ++i) {
    const Instruction& statement = function.body[i];
    if (statement.kind != StatementKind::Location) continue;
    const auto operands = function.operands_of(statement);
    if (operands.size() < kFunctionName) continue;
    Location location{i, kNone};
    if (operands.size() >= kInlinedOperands) {
      const auto found = last.find(triple(operands, kInlinedAt));
      if (found != last.end()) location.parent = found->second;
    }
    last[triple(operands, 0)] = static_cast<std::uint32_t>(locations_.size());
    locations_.push_back(location);
  }
}

SourcePosition SourceMap::at(std::uint32_t file, std::uint32_t line, std::uint32_t column) const {
  SourcePosition position;
  for (const SourceFile& each : module_->files) {
    if (each.number == file) position.file = module_->text(each.path);
  }
  position.line = line;
  position.column = column;
  return position;
}

std::string SourceMap::function_name(const Operand& label) const {
  const std::string_view name = module_->text(module_->symbols[label.id].name);
  for (const Item& item : module_->items) {
    if (item.kind != Item::Kind::Section) continue;
    const std::string_view values = after_label(module_->text(item.text), name);
    if (!values.empty()) return demangled(string_of(values, label.value));
  }
  return {};
}

std::vector<SourcePosition> SourceMap::walk(std::size_t statement, bool names) const {
  const auto after = std::ranges::upper_bound(locations_, statement, {}, &Location::statement);
  if (after == locations_.begin()) return {};
  std::vector<SourcePosition> result;
  const auto add = [&](const Triple& t) {
    result.push_back(at(static_cast<std::uint32_t>(t[0]), static_cast<std::uint32_t>(t[1]),
                        static_cast<std::uint32_t>(t[2])));
  };
  // Parents precede their children in the text, hence this terminates.
  for (std::uint32_t i = static_cast<std::uint32_t>(after - locations_.begin()) - 1; i != kNone;) {
    const Location& location = locations_[i];
    const auto operands = function_->operands_of(function_->body[location.statement]);
    add(triple(operands, 0));
    if (names && operands.size() > kFunctionName)
      result.back().function = function_name(operands[3]);
    if (location.parent == kNone && operands.size() >= kInlinedOperands) {
      add(triple(operands, kInlinedAt));
    }
    i = location.parent;
  }
  std::erase_if(result, [](const SourcePosition& position) { return !position.known(); });
  return result;
}

std::vector<SourcePosition> SourceMap::stack(std::size_t statement) const {
  return walk(statement, true);
}

SourcePosition SourceMap::position(std::size_t statement) const {
  const std::vector<SourcePosition> all = walk(statement, false);
  if (all.empty()) return {};
  return *std::ranges::find(all, all.back().file, &SourcePosition::file);
}

void SourceMap::fill(Finding& finding, std::size_t statement) const {
  std::vector<SourcePosition> all = stack(statement);
  if (all.empty()) return;
  const SourcePosition& own = *std::ranges::find(all, all.back().file, &SourcePosition::file);
  finding.source_file = own.file;
  finding.source_line = own.line;
  if (all.size() > 1) finding.inlined = std::move(all);
}

void fill_sources(std::span<Finding> findings, const Module& module) {
  std::multimap<std::uint32_t, Finding*> without;  // by line
  for (Finding& finding : findings) {
    if (finding.line != 0 && finding.source_line == 0) without.emplace(finding.line, &finding);
  }
  for (const Function& function : module.functions) {
    if (without.empty()) return;
    const SourceMap map(module, function);
    for (std::size_t i = 0; i < function.body.size(); ++i) {
      const auto [first, last] = without.equal_range(function.body[i].line);
      for (auto at = first; at != last; ++at) map.fill(*at->second, i);
      without.erase(first, last);
    }
  }
}

}  // namespace ptxgen::inline v0::ptx
