// src/driver/emulated/told.cpp - findings of a launch in the caller's terms
#include "driver/emulated/told.hpp"

#include <algorithm>
#include <charconv>
#include <mutex>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "driver/emulated/modules.hpp"
#include "ptxgen/ptx/printer.hpp"

namespace ptxgen::inline v0::driver::emulated {
namespace {

std::string to_text(const emulator::Dim3& size) {
  return "(" + std::to_string(size.x) + "," + std::to_string(size.y) + "," +
         std::to_string(size.z) + ")";
}

/// The statements of a module by the line of its text.
class Statements {
 public:
  explicit Statements(const ptx::Module& module) : module_(module) {
    for (const ptx::Function& function : module.functions) {
      for (const ptx::Instruction& statement : function.body) {
        if (statement.kind == ptx::StatementKind::Instruction) {
          by_line_.try_emplace(statement.line, Place{&function, &statement});
        }
      }
    }
  }
  /// Empty if the line has none.
  [[nodiscard]] std::string at(std::uint32_t line) const {
    const auto found = by_line_.find(line);
    if (line == 0 || found == by_line_.end()) return {};
    return ptx::print(module_, *found->second.function, *found->second.statement);
  }

 private:
  struct Place {
    const ptx::Function* function;
    const ptx::Instruction* statement;
  };
  const ptx::Module& module_;
  std::unordered_map<std::uint32_t, Place> by_line_;
};

/// Where a line of the loaded text comes from, as its loader knows it.
ModuleNotes::Place place_at(const ModuleNotes& notes, std::uint32_t line) {
  return line < notes.places.size() ? notes.places[line] : ModuleNotes::Place{};
}

/// "FILE:LINE" of a place, or empty.
std::string text_of(const ModuleNotes& notes, const ModuleNotes::Place& place) {
  if (place.cpp.known()) return std::string(place.cpp.file) + ":" + std::to_string(place.cpp.line);
  if (notes.file.empty() || place.line == 0) return {};
  return notes.file + ":" + std::to_string(place.line);
}

/// The emulator's sentences name statements as " at line N", in the text that was loaded: here the
/// places are those that the caller knows, or left out.
void localise(std::string& text, const ModuleNotes& notes) {
  constexpr std::string_view kAt = " at line ";
  for (std::size_t at = 0; (at = text.find(kAt, at)) != std::string::npos;) {
    std::uint32_t line = 0;
    const char* const digits = text.data() + at + kAt.size();
    const auto [end, failure] = std::from_chars(digits, text.data() + text.size(), line);
    const std::string place = text_of(notes, place_at(notes, line));
    const std::string instead = place.empty() ? std::string() : " at " + place;
    if (failure != std::errc{}) {
      at += kAt.size();
      continue;
    }
    text.replace(at, static_cast<std::size_t>(end - (text.data() + at)), instead);
    at += instead.size();
  }
}

/// The other party of a race, with its statement and not only its line.
std::string other_text(const emulator::RunFinding& finding, const ModuleNotes& notes,
                       const std::string& statement) {
  std::string text = "the other: thread " + to_text(finding.other.thread) + " of block " +
                     to_text(finding.other.block);
  if (!statement.empty()) text += ", " + statement;
  const std::string place = text_of(notes, place_at(notes, finding.other.line));
  return place.empty() ? text : text + " at " + place;
}

/// What `emulator::to_text` says, in the caller's terms where the loader gave notes.
std::string text_of(const ToldFinding& told, const emulator::RunFinding& raw,
                    const ModuleNotes* notes, const std::string& other) {
  emulator::RunFinding shown = told.found;
  if (notes != nullptr) {
    const std::string place = text_of(*notes, place_at(*notes, raw.finding.line));
    shown.finding.file = place.empty() ? "kernel '" + raw.finding.kernel + "'" : place;
    shown.finding.line = 0;  // in the place
    shown.finding.cpp = {};
    if (raw.has_other) {
      shown.has_other = false;
      auto& details = shown.finding.details;
      details.insert(details.begin(), other_text(raw, *notes, other));
    }
  }
  std::string text = emulator::to_text(shown);
  if (!told.statement.empty()) {
    text.insert(std::min(text.find('\n'), text.size()), "\n    " + told.statement);
  }
  return text;
}

}  // namespace

std::string place_of(const KernelLaunch& launch) {
  return "\n    in a launch of kernel '" + launch.function->kernel->name + "', grid " +
         to_text(launch.grid) + ", block " + to_text(launch.block);
}

std::vector<ToldFinding> told_of(const KernelLaunch& launch, const emulator::Result& result) {
  std::vector<ToldFinding> all;
  if (result.findings.empty()) return all;
  const CUmod_st& module = *launch.function->owner;
  const ModuleNotes* const notes = module.notes.get();
  const Statements statements(module.program.module());
  for (const emulator::RunFinding& raw : result.findings) {
    ToldFinding& told = all.emplace_back();
    told.found = raw;
    told.statement = statements.at(raw.finding.line);
    // An access to mapped memory goes on, as on hardware.
    const bool passes = raw.mapped && launch.options.mapped_pages;
    told.fault = !passes && fault_of(raw.rule) != CUDA_SUCCESS;
    if (notes != nullptr) {
      const ModuleNotes::Place place = place_at(*notes, raw.finding.line);
      told.found.finding.cpp = place.cpp;
      told.found.finding.file = notes->file;
      told.found.finding.line = notes->file.empty() ? 0 : place.line;
      told.found.other.line = notes->file.empty() ? 0 : place_at(*notes, raw.other.line).line;
      localise(told.found.finding.message, *notes);
      for (std::string& detail : told.found.finding.details) localise(detail, *notes);
    }
    const std::string other = raw.has_other ? statements.at(raw.other.line) : std::string();
    told.text = text_of(told, raw, notes, other) + place_of(launch);
  }
  return all;
}

CUresult annotate(CUmodule module, ModuleNotes notes) {
  return guarded([&] {
    if (!living(module)) return CUDA_ERROR_INVALID_HANDLE;
    auto kept = std::make_shared<const ModuleNotes>(std::move(notes));
    const std::lock_guard memory(module->context->memory_mutex);
    module->notes.swap(kept);  // the old ones go after the lock
    return CUDA_SUCCESS;
  });
}

}  // namespace ptxgen::inline v0::driver::emulated
