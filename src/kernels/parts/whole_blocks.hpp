// src/kernels/parts/whole_blocks.hpp - sizes that are whole blocks of a format
#pragma once

#include <string_view>

#include "ptxgen/kernels/element_type.hpp"
#include "ptxgen/support/error.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0 {

/// Throws `Error` (Stage::Launch, "bad-parameter") unless `values`, the parameter `name`, are whole
/// blocks of the type.
inline void check_whole_blocks(std::string_view kernel, std::string_view name, std::uint32_t values,
                               ElementType type) {
  const std::uint32_t block = info(type).block_values;
  if (values % block == 0) return;
  Error error(Stage::Launch, "bad-parameter",
              format_text("{} is {}, but a row of {} is whole blocks of {} values; pass a multiple "
                          "of {}, or another type",
                          name, values, to_string(type), block, block));
  error.kernel = kernel;
  throw error.refresh();
}

}  // namespace ptxgen::inline v0
