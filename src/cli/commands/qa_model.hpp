// src/cli/commands/qa_model.hpp - the gates that a model file passes
#pragma once

#include <array>
#include <string>
#include <vector>

#include "cli_common/device_choice.hpp"
#include "qa/run.hpp"

namespace ptxgen::cli {

inline constexpr std::size_t kModelGates = 7;
/// Of the options `--skip-NAME`, in the order of the gates.
inline constexpr std::array<const char*, kModelGates> kModelGateNames = {
    "file", "architecture", "dequantization", "tokenizer", "logits", "ptx-parity", "decode-rate"};

struct ModelGateOptions {
  std::string file;
  std::array<bool, kModelGates> skip{};
  bool verbose = false;      ///< the instructions of failed parity checks, with their PTX lines
  std::uint32_t tokens = 2;  ///< whose logits are compared
};

/// Runs the gates on a device: file, architecture and tensors, dequantisation, tokenizer, logits
/// against the fp64 references of all kernels, PTX parity, decode rate. A gate that needs the file
/// fails with it. Throws nothing about the model: what is wrong with it is a failed gate.
[[nodiscard]] qa::Report run_model_gates(const Device& device, const Settings& settings,
                                         const ModelGateOptions& options);

}  // namespace ptxgen::cli
