// src/cli/output/printed_buffer.cpp - a buffer's shape, type, head and tail
#include "cli/output/printed_buffer.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "ptxgen/frames/watch.hpp"
#include "ptxgen/ptx/names.hpp"
#include "support/join.hpp"

namespace ptxgen::cli {

using nlohmann::json;
using ptx::Type;

namespace {

constexpr std::uint64_t kEdgeElements = 6;  // at each end of a row
constexpr std::uint64_t kEdgeRows = 3;      // at each end of the rows

std::vector<std::string> elements(const BufferReader& read, Type type, std::uint64_t first,
                                  std::uint64_t count) {
  const std::size_t size = ptx::bytes(type);
  std::vector<std::byte> bytes(static_cast<std::size_t>(count) * size);
  read(first * size, bytes);
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t bits = 0;
    for (std::size_t b = size; b-- > 0;) {
      bits = bits << 8 | std::to_integer<std::uint64_t>(bytes[i * size + b]);
    }
    texts.push_back(frames::value_text(bits, type));
  }
  return texts;
}

std::string index_text(const PrintedBuffer& buffer, std::uint64_t row) {
  std::string text;
  for (std::size_t d = buffer.shape.size() - 1; d-- > 0;) {
    text = std::to_string(row % buffer.shape[d]) + (text.empty() ? "" : ",") + text;
    row /= buffer.shape[d];
  }
  return "[" + text + "]";
}

// A number where JSON has it; "nan" and "inf" stay text.
json value_of(const std::string& text) {
  const json number = json::parse(text, nullptr, false);
  return number.is_number() ? number : json(text);
}

}  // namespace

PrintedBuffer print_buffer(std::size_t argument, std::string name, Type type,
                           std::vector<std::uint64_t> shape, const BufferReader& read) {
  PrintedBuffer result{argument, std::move(name), type, std::move(shape), {}, 1};
  const std::uint64_t length = result.shape.empty() ? 1 : result.shape.back();
  for (std::size_t d = 0; d + 1 < result.shape.size(); ++d) result.row_count *= result.shape[d];
  for (std::uint64_t i = 0; i < result.row_count; ++i) {
    if (result.row_count > 2 * kEdgeRows && i == kEdgeRows) i = result.row_count - kEdgeRows;
    PrintedBuffer::Row row{i, {}, {}};
    const bool full = length <= 2 * kEdgeElements;
    row.head = elements(read, type, i * length, full ? length : kEdgeElements);
    if (!full) {
      row.tail = elements(read, type, (i + 1) * length - kEdgeElements, kEdgeElements);
    }
    result.rows.push_back(std::move(row));
  }
  return result;
}

std::string to_text(const PrintedBuffer& buffer) {
  std::string text = buffer.name + ": " + std::string(ptx::name(buffer.type));
  std::string extents;
  for (const std::uint64_t extent : buffer.shape) {
    extents += (extents.empty() ? "" : ",") + std::to_string(extent);
  }
  if (!extents.empty()) text += "[" + extents + "]";
  text += '\n';
  std::uint64_t next = 0;
  for (const PrintedBuffer::Row& row : buffer.rows) {
    if (row.index != next) text += "  ...\n";
    next = row.index + 1;
    text += "  ";
    if (buffer.shape.size() > 1) text += index_text(buffer, row.index) + " ";
    text += join_text(row.head, " ");
    if (!row.tail.empty()) text += " ... " + join_text(row.tail, " ");
    text += '\n';
  }
  return text;
}

json to_json(const std::vector<PrintedBuffer>& buffers) {
  json list = json::array();
  for (const PrintedBuffer& buffer : buffers) {
    json rows = json::array();
    for (const PrintedBuffer::Row& row : buffer.rows) {
      json head = json::array();
      json tail = json::array();
      for (const std::string& text : row.head) head.push_back(value_of(text));
      for (const std::string& text : row.tail) tail.push_back(value_of(text));
      rows.push_back({{"row", row.index}, {"head", std::move(head)}, {"tail", std::move(tail)}});
    }
    list.push_back({{"argument", buffer.argument},
                    {"name", buffer.name},
                    {"type", ptx::name(buffer.type)},
                    {"shape", buffer.shape},
                    {"rows", std::move(rows)}});
  }
  return list;
}

}  // namespace ptxgen::cli
