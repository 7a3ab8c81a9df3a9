// src/cli/output/gguf_text.hpp - GGUF files as text and JSON
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "ptxgen/model/gguf.hpp"

namespace ptxgen::cli {

/// Metadata, tensors and the totals of each tensor type as tables. Long strings and arrays are
/// shortened; characters that a terminal would act on are escaped.
[[nodiscard]] std::string to_text(const gguf::File& file);

/// `{"version","alignment","data_offset","bytes","metadata":{..},"types":{..},
///   "tensors":[{"name","type","dims","offset","bytes","values"}],
///   "totals":[{"type","tensors","values","bytes"}]}`. Arrays are complete. `types` has the type of
/// each key; floats without a JSON number are "nan", "inf" and "-inf".
[[nodiscard]] nlohmann::json to_json(const gguf::File& file);

}  // namespace ptxgen::cli
