// src/model/keys.cpp - the metadata keys of a file's architecture
#include "model/keys.hpp"

#include <algorithm>
#include <cmath>

#include "model/format.hpp"
#include "model/printable.hpp"
#include "model/tensors.hpp"

namespace ptxgen::inline v0::model {

namespace {

constexpr std::uint32_t kMaxContext = 1u << 30;  // positions of a cache

}  // namespace

void Keys::unsupported(std::string message) const {
  refuse_file(file_, "unsupported-model", std::move(message));
}

void Keys::bad(std::string_view name, const std::string& value, std::string_view expected) const {
  refuse_file(file_, "bad-config",
              format_text("{} is {}; {}", printable(key(name)), value, expected));
}

std::uint32_t Keys::within(std::string_view name, std::uint32_t value, std::uint32_t max) const {
  if (value == 0 || value > max) {
    bad(name, std::to_string(value), format_text("expects 1 to {}", max));
  }
  return value;
}

float Keys::positive(std::string_view name, float value) const {
  if (!(value > 0) || !std::isfinite(value)) {
    bad(name, format_text("{}", value), "expects a positive number");
  }
  return value;
}

KeySizes read_sizes(const Keys& keys) {
  KeySizes sizes;
  sizes.width = keys.size("embedding_length");
  sizes.ffn = keys.size("feed_forward_length");
  sizes.context = keys.size("context_length", kMaxContext);
  sizes.heads = keys.size("attention.head_count");
  sizes.kv_heads = keys.size_or("attention.head_count_kv", sizes.heads);
  sizes.head_size = keys.size_or("attention.key_length", std::max(1u, sizes.width / sizes.heads));
  return sizes;
}

}  // namespace ptxgen::inline v0::model
