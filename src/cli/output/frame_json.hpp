// src/cli/output/frame_json.hpp - frames as JSON
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>

#include "ptxgen/frames/frame.hpp"

namespace ptxgen::cli {

/// Numbers as numbers; NaN and infinities as text; values that are not known as null.
[[nodiscard]] nlohmann::json to_json(const frames::Frame& frame);
[[nodiscard]] nlohmann::json to_json(std::span<const frames::Frame> frames);

}  // namespace ptxgen::cli
