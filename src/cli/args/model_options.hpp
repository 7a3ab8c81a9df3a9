// src/cli/args/model_options.hpp - options of the commands that run a model
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cli/args/profile_options.hpp"
#include "cli_common/command_line.hpp"
#include "cli_common/device_choice.hpp"
#include "ptxgen/emulator/report/rules.hpp"
#include "ptxgen/kernels/element_type.hpp"

namespace ptxgen::cli {

struct ModelOptions {
  std::string file;
  std::uint32_t context = 0;  ///< positions; 0: the session's default
  std::string kv_type = "f32";
  std::string prefill_type = "f32";
  std::uint32_t prefill_rows = 0;  ///< 0: the default of the device
  std::string check = "default";
  DeviceOptions device;
  ProfileOptions profile;
  std::string output;
  bool json = false;
  bool repack = false;

  /// The first option in use that only the emulator supports, or empty.
  [[nodiscard]] std::string_view emulator_only() const noexcept;
  /// Throw `UsageError` that lists what is possible.
  [[nodiscard]] ElementType cache_type() const;
  [[nodiscard]] ElementType type_of_prefill() const;
  [[nodiscard]] emulator::RuleSet rules() const;
};
/// `options` must live as long as the command. `context_help`: the default of `--context`.
void add_model_options(Command& command, ModelOptions& options, const std::string& context_help,
                       const std::string& json_help);

}  // namespace ptxgen::cli
