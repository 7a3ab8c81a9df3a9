// src/cli/args/model_options.cpp - options of the commands that run a model
#include "cli/args/model_options.hpp"

#include <array>
#include <limits>
#include <span>

#include "cli_common/numbers.hpp"
#include "cli_common/program.hpp"
#include "ptxgen/support/error.hpp"
#include "support/format.hpp"

namespace ptxgen::cli {

std::string_view ModelOptions::emulator_only() const noexcept {
  if (!device.gpu.empty()) return "--gpu";
  if (check != ModelOptions{}.check) return "--check";
  return {};
}

namespace {

ElementType type_of(std::string_view option, const std::string& text,
                    std::span<const ElementType> types) {
  std::string names;
  for (const ElementType type : types) {
    if (to_string(type) == text) return type;
    names += (names.empty() ? "" : ", ") + std::string(to_string(type));
  }
  throw UsageError(format_text("{} {}: expects one of {}", option, text, names));
}

}  // namespace

ElementType ModelOptions::cache_type() const {
  constexpr std::array kTypes = {ElementType::f32, ElementType::f16, ElementType::bf16,
                                 ElementType::q8_0};
  return type_of("--kv-type", kv_type, kTypes);
}

ElementType ModelOptions::type_of_prefill() const {
  constexpr std::array kTypes = {ElementType::f32, ElementType::f16, ElementType::bf16};
  return type_of("--prefill-type", prefill_type, kTypes);
}

emulator::RuleSet ModelOptions::rules() const {
  try {
    return emulator::RuleSet::parse(check);
  } catch (const Error& error) {
    throw UsageError(format_text("--check {}: {}", check, error.message));
  }
}

void add_model_options(Command& command, ModelOptions& options, const std::string& context_help,
                       const std::string& json_help) {
  command.add_option("model", options.file, "a GGUF file").required();
  command
      .add_option("--context", options.context, "positions of the sequence (" + context_help + ")")
      .range(1, std::numeric_limits<std::uint32_t>::max());
  command.add_option("--kv-type", options.kv_type, "of keys and values: f32, f16, bf16 or q8_0")
      .capture_default_str();
  command
      .add_option("--prefill-type", options.prefill_type,
                  "of the products of a long prompt: f32, exact; f16 or bf16 on tensor cores")
      .capture_default_str();
  command.add_option("--prefill-rows", options.prefill_rows,
                     "tokens of a prompt computed together, at most 1024 (512; emulated: 128)");
  command
      .add_option("--check", options.check, "what the emulator checks: all, default, none, RULE,..")
      .capture_default_str();
  options.device.add_to(command);
  command.add_flag("--repack", options.repack,
                   "rows of blocks as arrays of their fields on the device, for wider loads");
  options.profile.add_to(command);
  command.add_option("-o,--output", options.output, "write there instead of standard output");
  command.add_flag("--json", options.json, "one JSON document: " + json_help);
}

}  // namespace ptxgen::cli
