// src/tile/view_text.cpp - views as text
#include <vector>

#include "ptxgen/support/error.hpp"
#include "ptxgen/tile/view.hpp"
#include "support/format.hpp"
#include "support/numbers.hpp"
#include "tile/checked.hpp"

namespace ptxgen::inline v0 {

namespace {

constexpr std::string_view kReadOnly = " read-only";

std::string list(const Dims& dims, std::string_view dynamic) {
  std::string text = "[";
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (i != 0) text += ", ";
    if (dims[i] == kDynamicDim) {
      text += dynamic;
    } else {
      text += std::to_string(dims[i]);
    }
  }
  return text + "]";
}

/// Reads from the front of a text.
class Reader {
 public:
  explicit Reader(std::string_view text) : all_(text), rest_(text) {}

  bool take(std::string_view token) {
    if (!rest_.starts_with(token)) return false;
    rest_.remove_prefix(token.size());
    return true;
  }
  void need(std::string_view token) {
    if (!take(token)) refuse();
  }
  std::int64_t number() {
    if (take("?")) return kDynamicDim;
    const std::optional<std::int64_t> value = take_number<std::int64_t>(rest_);
    if (!value) refuse();
    return *value;
  }
  Dims dims() {
    std::vector<std::int64_t> values;
    need("[");
    if (take("]")) return Dims(values);
    do {
      values.push_back(number());
    } while (take(", "));
    need("]");
    return Dims(values);
  }
  [[nodiscard]] bool done() const { return rest_.empty(); }
  [[noreturn]] void refuse() const {
    throw_view("view", format_text("'{}' is no view", all_),
               "a view is written as sizes, strides and offset",
               "write it like [4, 8]:[8, 1]+0, with ? for what is dynamic");
  }

 private:
  std::string_view all_;
  std::string_view rest_;
};

}  // namespace

void throw_view(std::string_view code, std::string what, std::string_view rule,
                std::string_view cure) {
  throw Error(Stage::Build, std::string(code),
              format_text("{}; rule: {}; cure: {}", what, rule, cure));
}

std::string Dims::text() const { return list(*this, "dynamic"); }

std::string TensorLayout::text() const {
  return format_text("{}:{}+{}{}", list(sizes_, "?"), list(strides_, "?"),
                     offset_ == kDynamicDim ? "?" : std::to_string(offset_),
                     read_only_ ? kReadOnly : "");
}

TensorLayout TensorLayout::parse(std::string_view text) {
  Reader reader(text);
  const Dims sizes = reader.dims();
  reader.need(":");
  const Dims strides = reader.dims();
  reader.need("+");
  const std::int64_t offset = reader.number();
  const bool read_only = reader.take(kReadOnly);
  if (!reader.done()) reader.refuse();
  // The strides 0 of a read-only view are checked as strides of 1, which reach further.
  Dims checked = strides;
  for (std::size_t i = 0; read_only && i < strides.size(); ++i) {
    if (strides[i] == 0) checked[i] = 1;
  }
  TensorLayout view = strided(sizes, checked, offset);
  view.strides_ = strides;
  view.read_only_ = read_only;
  return view;
}

}  // namespace ptxgen::inline v0
