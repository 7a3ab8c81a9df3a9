// src/cli/args/entry_name.cpp - the kernel that --entry means
#include "cli/args/entry_name.hpp"

#include <cxxabi.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <vector>

#include "cli/commands/commands.hpp"
#include "cli_common/nearest.hpp"

namespace ptxgen::cli {

namespace {

// `ns::scale<float>` of `void ns::scale<float>(float*)`.
std::string_view without_parameters(std::string_view name) {
  if (name.starts_with("void ")) name.remove_prefix(5);
  // The parameters begin at the parenthesis that the last one closes.
  if (!name.ends_with(')')) return name;
  std::size_t depth = 0;
  for (std::size_t i = name.size(); i-- > 0;) {
    if (name[i] == ')') ++depth;
    if (name[i] == '(' && --depth == 0) return name.substr(0, i);
  }
  return name;
}

std::string_view without_arguments(std::string_view name) {
  name = without_parameters(name);
  if (!name.ends_with('>')) return name;
  std::size_t depth = 0;
  for (std::size_t i = name.size(); i-- > 0;) {
    if (name[i] == '>') ++depth;
    if (name[i] == '<' && --depth == 0) return name.substr(0, i);
  }
  return name;
}

std::string_view last_part(std::string_view name) {
  name = without_arguments(name);
  const std::size_t colons = name.rfind("::");
  return colons == std::string_view::npos ? name : name.substr(colons + 2);
}

// From the strictest comparison to the widest.
using Text = std::string_view;
using Reading = bool (*)(Text mangled, Text readable, Text wanted);
constexpr std::array<Reading, 4> kReadings = {
    [](Text mangled, Text, Text wanted) { return mangled == wanted; },
    [](Text, Text readable, Text wanted) {
      return readable == wanted || without_parameters(readable) == wanted;
    },
    [](Text, Text readable, Text wanted) {
      return without_arguments(readable) == wanted || last_part(readable) == wanted;
    },
    [](Text mangled, Text readable, Text wanted) {
      return mangled.find(wanted) != Text::npos || readable.find(wanted) != Text::npos;
    },
};

std::string listed(std::span<const std::string> names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + both_forms(name);
  return text;
}

}  // namespace

std::string demangled(const std::string& name) {
  if (!name.starts_with("_Z")) return name;
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), std::free);
  return status == 0 && text != nullptr ? std::string(text.get()) : name;
}

std::string both_forms(const std::string& name) {
  const std::string readable = demangled(name);
  return readable == name ? name : readable + " (" + name + ")";
}

std::size_t entry_index(std::span<const std::string> names, const std::string& wanted,
                        const std::string& file) {
  if (names.empty()) throw UsageError(file + " has no entry to run");
  if (wanted.empty()) {
    if (names.size() == 1) return 0;
    throw UsageError(file + " has several entries, name one with --entry: " + listed(names));
  }
  std::vector<std::string> readable;
  for (const std::string& name : names) readable.push_back(demangled(name));
  for (const Reading reading : kReadings) {
    std::vector<std::string> matching;
    std::size_t found = 0;
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (!reading(names[i], readable[i], wanted)) continue;
      matching.push_back(names[i]);
      found = i;
    }
    if (matching.size() == 1) return found;
    if (matching.size() > 1) {
      throw UsageError("--entry " + wanted + ": " + file +
                       " has several such entries, write more of the name: " + listed(matching));
    }
  }
  std::vector<std::string> short_names(names.begin(), names.end());
  for (const std::string& name : readable) short_names.emplace_back(last_part(name));
  throw UsageError("--entry " + wanted + ": " + file + " has no such entry" +
                   did_you_mean(wanted, short_names) + "; it has: " + listed(names));
}

}  // namespace ptxgen::cli
