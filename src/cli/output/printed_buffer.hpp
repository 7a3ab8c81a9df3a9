// src/cli/output/printed_buffer.hpp - a buffer's shape, type, head and tail
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "ptxgen/ptx/types.hpp"

namespace ptxgen::cli {

/// What `print:` shows of a buffer: its first and last elements along each row, of its first and
/// last rows. A row runs along the last dimension.
struct PrintedBuffer {
  struct Row {
    std::uint64_t index = 0;  ///< of the row, the dimensions before the last counted in C order
    std::vector<std::string> head;
    std::vector<std::string> tail;  ///< empty if `head` is the full row
  };
  std::size_t argument = 0;  ///< from 1
  std::string name;          ///< of the parameter
  ptx::Type type = ptx::Type::none;
  std::vector<std::uint64_t> shape;
  std::vector<Row> rows;
  std::uint64_t row_count = 0;
};

/// Reads that many bytes of the buffer from an offset on.
using BufferReader = std::function<void(std::uint64_t offset, std::span<std::byte> bytes)>;

[[nodiscard]] PrintedBuffer print_buffer(std::size_t argument, std::string name, ptx::Type type,
                                         std::vector<std::uint64_t> shape,
                                         const BufferReader& read);
/// `y: f32[4]` and the indented elements, with final newlines.
[[nodiscard]] std::string to_text(const PrintedBuffer& buffer);
[[nodiscard]] nlohmann::json to_json(const std::vector<PrintedBuffer>& buffers);

}  // namespace ptxgen::cli
