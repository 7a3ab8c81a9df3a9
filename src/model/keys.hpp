// src/model/keys.hpp - the metadata keys of a file's architecture
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ptxgen/model/gguf.hpp"

namespace ptxgen::inline v0::model {

/// Numbers by the keys of the file's architecture: "llama.block_count". All throw what the getters
/// of `File` throw, and "bad-config" for a number out of range.
class Keys {
 public:
  /// Of the largest width.
  static constexpr std::uint32_t kMaxSize = 1u << 24;

  explicit Keys(const gguf::File& file)
      : file_(file), prefix_(std::string(file.string("general.architecture")) + ".") {}

  [[nodiscard]] const gguf::File& file() const { return file_; }
  [[nodiscard]] std::string key(std::string_view name) const { return prefix_ + std::string(name); }
  [[nodiscard]] bool has(std::string_view name) const { return file_.find(key(name)) != nullptr; }
  [[nodiscard]] std::uint32_t size(std::string_view name, std::uint32_t max = kMaxSize) const {
    return within(name, file_.u32(key(name)), max);
  }
  [[nodiscard]] std::uint32_t size_or(std::string_view name, std::uint32_t otherwise) const {
    return within(name, file_.u32(key(name), otherwise), kMaxSize);
  }
  [[nodiscard]] float positive(std::string_view name) const {
    return positive(name, file_.f32(key(name)));
  }
  [[nodiscard]] float positive_or(std::string_view name, float otherwise) const {
    return positive(name, file_.f32(key(name), otherwise));
  }
  /// "unsupported-model"
  [[noreturn]] void unsupported(std::string message) const;
  [[noreturn]] void bad(std::string_view name, const std::string& value,
                        std::string_view expected) const;

 private:
  [[nodiscard]] std::uint32_t within(std::string_view name, std::uint32_t value,
                                     std::uint32_t max) const;
  [[nodiscard]] float positive(std::string_view name, float value) const;

  const gguf::File& file_;
  std::string prefix_;
};

/// Sizes that every architecture names the same.
struct KeySizes {
  std::uint32_t width = 0;
  std::uint32_t ffn = 0;
  std::uint32_t heads = 0;
  std::uint32_t kv_heads = 0;   ///< as many as heads where the file does not say
  std::uint32_t head_size = 0;  ///< width / heads where the file does not say
  std::uint32_t context = 0;
};
[[nodiscard]] KeySizes read_sizes(const Keys& keys);

}  // namespace ptxgen::inline v0::model
