// src/cli/output/gguf_text.cpp - GGUF files as text and JSON
#include "cli/output/gguf_text.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <vector>

#include "model/printable.hpp"
#include "support/count.hpp"
#include "support/format.hpp"

namespace ptxgen::cli {

namespace {

using gguf::Value;
using gguf::ValueType;

// Bytes of a string, and of the elements of an array, in a line of text.
constexpr std::size_t kMaxValueBytes = 60;

// With the fewest digits that give the value back: 1e-05, not 9.999999747378752e-06.
std::string float_text(const Value& value) {
  const double number = value.number().value();
  return value.type() == ValueType::f32 ? format_text("{}", static_cast<float>(number))
                                        : format_text("{}", number);
}

std::string number_text(const Value& value) {
  if (value.number()) return float_text(value);
  if (const auto number = value.boolean()) return *number ? "true" : "false";
  if (const auto number = value.unsigned_integer()) return format_text("{}", *number);
  return format_text("{}", value.integer().value());
}

std::string type_text(const Value& value) {
  if (value.type() != ValueType::array) return std::string(to_string(value.type()));
  return format_text("{}[{}]", to_string(value.element_type()), value.size());
}

std::string value_text(const Value& value, std::size_t max_bytes);

std::string array_text(const Value& value, std::size_t max_bytes) {
  std::string text;
  for (const Value& element : value) {
    const std::string separator = text.empty() ? "" : ", ";
    const std::string next = value_text(element, max_bytes);
    if (text.size() + next.size() > max_bytes) return "[" + text + separator + "...]";
    text += separator + next;
  }
  return "[" + text + "]";
}

std::string value_text(const Value& value, std::size_t max_bytes) {
  if (value.type() == ValueType::array) return array_text(value, max_bytes);
  if (const auto text = value.string()) return "\"" + printable(*text, max_bytes) + "\"";
  return number_text(value);
}

std::string dims_text(const gguf::Tensor& tensor) {
  std::string text;
  for (const std::uint64_t dim : tensor.dims()) {
    text += format_text("{}{}", text.empty() ? "" : " x ", dim);
  }
  return text;
}

struct Total {
  const gguf::TensorType* type = nullptr;
  std::uint64_t tensors = 0;
  std::uint64_t values = 0;
  std::uint64_t bytes = 0;
};

// Of each tensor type that occurs, the largest first.
std::vector<Total> totals_of(const gguf::File& file) {
  std::vector<Total> totals;
  for (const gguf::Tensor& tensor : file.tensors()) {
    auto total = std::ranges::find(totals, tensor.type, &Total::type);
    if (total == totals.end()) total = totals.insert(totals.end(), Total{tensor.type, 0, 0, 0});
    ++total->tensors;
    total->values += tensor.values;
    total->bytes += tensor.bytes;
  }
  std::ranges::stable_sort(totals, std::ranges::greater{}, &Total::bytes);
  return totals;
}

// Columns as wide as their widest cell; the first `left` ones are left-aligned.
class Columns {
 public:
  Columns(std::size_t count, std::size_t left) : widths_(count), left_(left) {}
  void add(std::vector<std::string> cells) {
    for (std::size_t i = 0; i < cells.size(); ++i)
      widths_[i] = std::max(widths_[i], cells[i].size());
    rows_.push_back(std::move(cells));
  }
  [[nodiscard]] std::string text() const {
    std::string result;
    for (const auto& cells : rows_) {
      std::string line;
      for (std::size_t i = 0; i < cells.size(); ++i) {
        const std::string blanks(widths_[i] - cells[i].size(), ' ');
        line += (i == 0 ? "" : "  ") + (i < left_ ? cells[i] + blanks : blanks + cells[i]);
      }
      result += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
    }
    return result;
  }

 private:
  std::vector<std::size_t> widths_;
  std::size_t left_ = 0;
  std::vector<std::vector<std::string>> rows_;
};

std::string metadata_text(const gguf::File& file) {
  Columns columns(3, 3);
  for (const gguf::Entry& entry : file.metadata()) {
    columns.add(
        {printable(entry.key), type_text(entry.value), value_text(entry.value, kMaxValueBytes)});
  }
  return columns.text();
}

std::string tensors_text(const gguf::File& file) {
  Columns columns(5, 3);
  columns.add({"tensor", "type", "dims", "bytes", "offset"});
  for (const gguf::Tensor& tensor : file.tensors()) {
    columns.add({printable(tensor.name), std::string(tensor.type->name), dims_text(tensor),
                 format_text("{}", tensor.bytes), format_text("{}", tensor.offset)});
  }
  return columns.text();
}

std::string totals_text(const gguf::File& file) {
  Columns columns(4, 1);
  columns.add({"type", "tensors", "values", "bytes"});
  Total all;
  for (const Total& total : totals_of(file)) {
    columns.add({std::string(total.type->name), format_text("{}", total.tensors),
                 format_text("{}", total.values), format_text("{}", total.bytes)});
    all.tensors += total.tensors;
    all.values += total.values;
    all.bytes += total.bytes;
  }
  columns.add({"all", format_text("{}", all.tensors), format_text("{}", all.values),
               format_text("{}", all.bytes)});
  return columns.text();
}

nlohmann::json to_json(const Value& value) {
  if (value.type() == ValueType::array) {
    nlohmann::json elements = nlohmann::json::array();
    for (const Value& element : value) elements.push_back(to_json(element));
    return elements;
  }
  if (const auto text = value.string()) return *text;
  if (const auto number = value.boolean()) return *number;
  if (const auto number = value.unsigned_integer()) return *number;
  if (const auto number = value.integer()) return *number;
  const std::string text = float_text(value);
  if (std::isnan(*value.number())) return "nan";
  if (std::isinf(*value.number())) return text;
  return std::strtod(text.c_str(), nullptr);
}

nlohmann::json to_json(const gguf::Tensor& tensor) {
  return {{"name", tensor.name},     {"type", tensor.type->name}, {"dims", tensor.dims()},
          {"offset", tensor.offset}, {"bytes", tensor.bytes},     {"values", tensor.values}};
}

}  // namespace

std::string to_text(const gguf::File& file) {
  std::string text = format_text(
      "GGUF version {}, {}: {}, {}, data from byte {}, alignment {}\n", file.version(),
      count_text(file.size(), "byte"), count_text(file.metadata().size(), "key"),
      count_text(file.tensors().size(), "tensor"), file.data_offset(), file.alignment());
  if (!file.metadata().empty()) text += "\n" + metadata_text(file);
  if (!file.tensors().empty()) text += "\n" + tensors_text(file) + "\n" + totals_text(file);
  return text;
}

nlohmann::json to_json(const gguf::File& file) {
  nlohmann::json metadata = nlohmann::json::object(), types = nlohmann::json::object();
  for (const gguf::Entry& entry : file.metadata()) {
    const std::string key(entry.key);
    metadata[key] = to_json(entry.value);
    types[key] = type_text(entry.value);
  }
  nlohmann::json tensors = nlohmann::json::array(), totals = nlohmann::json::array();
  for (const gguf::Tensor& tensor : file.tensors()) tensors.push_back(to_json(tensor));
  for (const Total& total : totals_of(file)) {
    totals.push_back({{"type", total.type->name},
                      {"tensors", total.tensors},
                      {"values", total.values},
                      {"bytes", total.bytes}});
  }
  return {{"version", file.version()},       {"bytes", file.size()},
          {"alignment", file.alignment()},   {"data_offset", file.data_offset()},
          {"metadata", std::move(metadata)}, {"types", std::move(types)},
          {"tensors", std::move(tensors)},   {"totals", std::move(totals)}};
}

}  // namespace ptxgen::cli
