// src/qa/line.cpp - sections, names, and the table of all lines
#include "qa/line.hpp"

#include "qa/lines/lines.hpp"

namespace ptxgen::qa {

namespace {

constexpr SectionInfo kSections[] = {
    {Section::A, "A", "Environment", Group::Checklist, 10},
    {Section::B, "B", "Kernel", Group::Checklist, 15},
    {Section::C, "C", "Integration", Group::Checklist, 15},
    {Section::D, "D", "Correctness", Group::Checklist, 20},
    {Section::E, "E", "Performance", Group::Checklist, 29},
    {Section::F, "F", "Stability", Group::Checklist, 10},
    {Section::G, "G", "Documentation", Group::Checklist, 5},
    {Section::H, "H", "Hypotheses of the GEMV", Group::Checklist, 5},
    {Section::Static, "1", "Static analysis", Group::Modes, 20},
    {Section::Frames, "2", "Simulation in frames", Group::Modes, 15},
    {Section::Playbooks, "3", "Playbooks", Group::Modes, 15},
    {Section::Coverage, "4", "Coverage", Group::Modes, 10},
    {Section::Replay, "5", "Deterministic replay", Group::Modes, 10},
    {Section::Profiles, "6", "Profiles", Group::Modes, 10},
    {Section::Hypotheses, "hypotheses", "Speed-up claims", Group::Unscored, 0},
    {Section::Gates, "gates", "Quality gates", Group::Unscored, 0},
    {Section::Claims, "claims", "Falsifiable claims", Group::Unscored, 0},
    {Section::Model, "model", "Gates of a model", Group::Unscored, 0},
};

}  // namespace

std::span<const SectionInfo> sections() noexcept { return kSections; }

const SectionInfo& info(Section section) noexcept {
  return kSections[static_cast<std::size_t>(section)];
}

std::string_view to_string(Means means) noexcept {
  constexpr std::string_view kNames[] = {"unit", "emulator", "gpu", "record", "none"};
  return kNames[static_cast<std::size_t>(means)];
}

std::string_view to_string(Status status) noexcept {
  constexpr std::string_view kNames[] = {"passed", "failed", "skipped", "not-applicable"};
  return kNames[static_cast<std::size_t>(status)];
}

std::string_view to_string(Need need) noexcept {
  constexpr std::string_view kNames[] = {"", "gpu", "record", "tool", "feature"};
  return kNames[static_cast<std::size_t>(need)];
}

std::string_view to_string(Verdict verdict) noexcept {
  constexpr std::string_view kNames[] = {"", "supported", "falsified"};
  return kNames[static_cast<std::size_t>(verdict)];
}

std::span<const Line> all_lines() {
  static const std::vector<Line> kAll = [] {
    std::vector<Line> all;
    for (const auto lines :
         {environment_lines(), kernel_lines(), integration_lines(), correctness_lines(),
          performance_lines(), stability_lines(), documentation_lines(), hypothesis_lines(),
          static_lines(), frame_lines(), speed_up_lines(), coverage_lines(), replay_lines(),
          playbook_lines(), profile_lines(), gate_lines(), claim_lines()}) {
      all.insert(all.end(), lines.begin(), lines.end());
    }
    return all;
  }();
  return kAll;
}

}  // namespace ptxgen::qa
