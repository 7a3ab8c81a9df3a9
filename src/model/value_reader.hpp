// src/model/value_reader.hpp - metadata values from checked bytes
#pragma once

#include "model/cursor.hpp"
#include "ptxgen/model/gguf.hpp"

namespace ptxgen::inline v0::gguf {

/// "a u32", "an i8"
[[nodiscard]] std::string with_article(ValueType type);

/// Reads values and everything in them. Throws `Error` as `File`.
class ValueReader {
 public:
  explicit ValueReader(Cursor& cursor) noexcept : cursor_(cursor) {}

  /// The number of a type.
  [[nodiscard]] ValueType type();
  /// A value of that type, in `depth` arrays.
  [[nodiscard]] Value value(ValueType type, std::uint32_t depth = 0);

 private:
  [[nodiscard]] Value array(std::uint32_t depth);
  void skip_elements(ValueType type, std::uint64_t count, std::uint32_t depth);
  void check_bools(const Value& value) const;

  Cursor& cursor_;
};

}  // namespace ptxgen::inline v0::gguf
