// src/runtime/assemble/assembly_log.cpp - parsing the logs of assemblers
#include <algorithm>
#include <map>
#include <optional>
#include <string_view>

#include "runtime/assemble/assembler_tools.hpp"
#include "support/elf.hpp"
#include "support/numbers.hpp"

namespace ptxgen::inline v0 {

namespace {

template <class Visit>
void for_each_line(std::string_view text, Visit&& visit) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    visit(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

/// The number at `at`, if there is one.
std::optional<std::uint64_t> number_at(std::string_view text, std::size_t at) {
  text.remove_prefix(std::min(at, text.size()));
  return take_number<std::uint64_t>(text);
}

std::optional<std::uint64_t> number_after(std::string_view text, std::string_view words) {
  const std::size_t at = text.find(words);
  return at == std::string_view::npos ? std::nullopt : number_at(text, at + words.size());
}

/// The number in front of `words`: 512 in "512 bytes smem".
std::optional<std::uint64_t> number_before(std::string_view text, std::string_view words) {
  const std::size_t at = text.find(words);
  if (at == std::string_view::npos || at == 0) return std::nullopt;
  std::size_t begin = at;
  while (begin > 0 && text[begin - 1] >= '0' && text[begin - 1] <= '9') --begin;
  return number_at(text, begin);
}

/// `name` or `'name'` after `words`, up to a blank, a quote or a colon.
std::optional<std::string> name_after(std::string_view text, std::string_view words) {
  const std::size_t at = text.find(words);
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view rest = text.substr(at + words.size());
  if (!rest.empty() && rest.front() == '\'') rest.remove_prefix(1);
  return std::string(rest.substr(0, rest.find_first_of("' :\r")));
}

/// Position after "error :" or "fatal :"; npos if the line is not an error.
std::size_t complaint_at(std::string_view line) {
  for (const std::string_view word : {"error", "fatal"}) {
    for (std::size_t at = line.find(word); at != std::string_view::npos;
         at = line.find(word, at + 1)) {
      const std::size_t colon = line.find_first_not_of(' ', at + word.size());
      if (colon == std::string_view::npos || line[colon] != ':') continue;
      // Only at the start, or after "ptxas " or "line 3; ".
      if (at != 0 && line[at - 1] != ' ') continue;
      return colon + 1;
    }
  }
  // nvJitLink's own errors: "ERROR NVJITLINK_ERROR_PTX_COMPILE: ...", "ERROR 1: ...".
  if (line.rfind("ERROR ", 0) == 0) return std::min(line.find(':'), line.size() - 1) + 1;
  return std::string_view::npos;
}

using Kernels = std::map<std::string, KernelResources>;

/// The figures that ptxas -v and nvJitLink -verbose print.
Kernels kernels_of_log(std::string_view log, Assembly& assembly) {
  Kernels kernels;
  KernelResources* kernel = nullptr;
  for_each_line(log, [&](std::string_view line) {
    if (const auto name = name_after(line, "Compiling entry function ")) {
      kernel = &kernels[*name];
      kernel->name = *name;
      return;
    }
    // The linker's figures are for the kernel with its callees.
    if (line.rfind("info ", 0) == 0) {
      if (const auto name = name_after(line, "Function properties for ")) {
        const auto known = kernels.find(*name);
        kernel = known == kernels.end() ? nullptr : &known->second;
        return;
      }
    }
    if (const auto stores = number_before(line, " bytes spill stores")) {
      const std::uint64_t loads = number_before(line, " bytes spill loads").value_or(0);
      assembly.spill_stores += *stores;
      assembly.spill_loads += loads;
      if (kernel != nullptr) {
        kernel->spill_stores += *stores;
        kernel->spill_loads += loads;
        kernel->stack =
            std::max(kernel->stack, number_before(line, " bytes stack frame").value_or(0));
      }
      return;
    }
    if (kernel == nullptr) return;
    const auto registers = number_before(line, " registers");
    if (!registers) return;
    kernel->registers = static_cast<std::uint32_t>(*registers);
    kernel->barriers = static_cast<std::uint32_t>(number_before(line, " barriers").value_or(0));
    kernel->shared = number_before(line, " bytes smem").value_or(0);
    const auto cumulative = number_before(line, " bytes cumulative stack size");
    const auto linked = number_before(line, " stack,");
    kernel->stack = std::max({kernel->stack, cumulative.value_or(0), linked.value_or(0)});
  });
  return kernels;
}

/// Reads constant banks, and kernels that the log lacks, from the cubin.
void add_cubin_figures(Kernels& kernels, Assembly& assembly) {
  constexpr std::string_view kText = ".text.";
  constexpr std::string_view kConstant = ".nv.constant";
  std::uint64_t module_constants = 0;
  const std::vector<ElfSection> sections = elf_sections(assembly.cubin);
  if (kernels.empty()) {
    // Every kernel has an .nv.constant0 section, device functions have none.
    for (const ElfSection& section : sections) {
      if (section.name.rfind(kText, 0) != 0) continue;
      const std::string name(section.name.substr(kText.size()));
      const std::string bank = ".nv.constant0." + name;
      if (std::none_of(sections.begin(), sections.end(),
                       [&](const ElfSection& other) { return other.name == bank; })) {
        continue;
      }
      KernelResources& kernel = kernels[name];
      kernel.name = name;
      // The register count is the top byte of the section's info field.
      kernel.registers = section.info >> 24;
    }
  }
  for (const ElfSection& section : sections) {
    if (section.name.rfind(kConstant, 0) != 0) continue;
    const std::size_t dot = section.name.find('.', kConstant.size());
    if (dot == std::string_view::npos) {
      module_constants += section.size;
    } else if (const auto at = kernels.find(std::string(section.name.substr(dot + 1)));
               at != kernels.end()) {
      at->second.constant += section.size;
    }
  }
  assembly.constant = module_constants;
}

}  // namespace

LogError first_error(const std::string& log) {
  LogError first;
  for_each_line(log, [&first](std::string_view line) {
    if (first.line != 0) return;
    const std::size_t at = complaint_at(line);
    if (at == std::string_view::npos) return;
    const std::string_view prefix = line.substr(0, at);
    auto number = number_after(prefix, ", line ");
    if (!number) number = number_after(line, " on line ");
    if (!number && !first.text.empty()) return;
    first.line = static_cast<std::uint32_t>(number.value_or(0));
    first.text = trimmed(line.substr(at));
  });
  return first;
}

std::vector<LogError> all_errors(const std::string& log) {
  std::vector<LogError> all;
  LogError without_line;
  for_each_line(log, [&](std::string_view line) {
    const std::size_t at = complaint_at(line);
    if (at == std::string_view::npos) return;
    auto number = number_after(line.substr(0, at), ", line ");
    if (!number) number = number_after(line, " on line ");
    const LogError found{static_cast<std::uint32_t>(number.value_or(0)),
                         std::string(trimmed(line.substr(at)))};
    if (found.line == 0) {
      if (without_line.text.empty()) without_line = found;
      return;
    }
    const bool known = std::any_of(all.begin(), all.end(),
                                   [&](const LogError& other) { return other.line == found.line; });
    if (!known) all.push_back(found);
  });
  if (all.empty() && !without_line.text.empty()) all.push_back(without_line);
  return all;
}

void read_resources(Assembly& assembly) {
  Kernels kernels = kernels_of_log(assembly.log, assembly);
  add_cubin_figures(kernels, assembly);
  std::uint64_t largest_constant = 0;
  for (auto& [name, kernel] : kernels) {
    assembly.registers = std::max(assembly.registers, kernel.registers);
    assembly.shared = std::max(assembly.shared, kernel.shared);
    largest_constant = std::max(largest_constant, kernel.constant);
    assembly.kernels.push_back(std::move(kernel));
  }
  assembly.constant += largest_constant;
}

bool is_target_name(const std::string& target) {
  if (target.rfind("sm_", 0) != 0) return false;
  const std::size_t end = target.find_first_not_of("0123456789", 3);
  if (end == 3 || target.size() == 3 || target.size() > 8) return false;
  if (end == std::string::npos) return true;
  return end + 1 == target.size() && (target[end] == 'a' || target[end] == 'f');
}

}  // namespace ptxgen::inline v0
