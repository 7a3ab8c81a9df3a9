// src/model/gguf.cpp - lookups in an open GGUF file
#include "ptxgen/model/gguf.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "model/file_state.hpp"
#include "model/format.hpp"
#include "model/printable.hpp"
#include "model/value_reader.hpp"
#include "ptxgen/support/error.hpp"

namespace ptxgen::inline v0::gguf {

namespace {

[[noreturn]] void not_found(const std::string& file, std::string_view noun, std::string_view name) {
  Error error(Stage::Io, "not-found",
              format_text("the file has no {} '{}'", noun, printable(name)));
  error.file = file;
  throw error.refresh();
}

[[noreturn]] void mismatch(const std::string& file, const Entry& entry, std::string_view expected) {
  const Value& value = entry.value;
  std::string type = with_article(value.type());
  if (value.type() == ValueType::array) {
    type += format_text(" of {}", to_string(value.element_type()));
  }
  fail(file, "type-mismatch", {"key", entry.key, 0}, value.offset(),
       format_text("the value is {}; expects {}", type, expected));
}

// Where the key is required: throws if it is missing.
const Entry& required(const std::string& file, const Entry* entry, std::string_view key) {
  if (entry == nullptr) not_found(file, "key", key);
  return *entry;
}

template <class T>
T integer_of(const std::string& file, const Entry& entry, std::string_view type) {
  const Value& value = entry.value;
  const auto positive = value.unsigned_integer();
  const auto negative = value.integer();
  if (!positive && !negative) mismatch(file, entry, "an integer");
  const bool fits = positive ? std::in_range<T>(*positive) : std::in_range<T>(*negative);
  if (!fits) {
    fail(file, "out-of-range", {"key", entry.key, 0}, value.offset(),
         format_text("{} does not fit into {}",
                     positive ? std::to_string(*positive) : std::to_string(*negative), type));
  }
  return positive ? static_cast<T>(*positive) : static_cast<T>(*negative);
}

float f32_of(const std::string& file, const Entry& entry) {
  const auto value = entry.value.number();
  if (!value) mismatch(file, entry, "a float");
  return static_cast<float>(*value);
}

bool boolean_of(const std::string& file, const Entry& entry) {
  const auto value = entry.value.boolean();
  if (!value) mismatch(file, entry, "a bool");
  return *value;
}

std::string_view string_of(const std::string& file, const Entry& entry) {
  const auto value = entry.value.string();
  if (!value) mismatch(file, entry, "a string");
  return *value;
}

}  // namespace

File::File(const std::string& path) : state_(Hidden<State>::make()) {
  state_->name = path;
  state_->mapping = MappedFile(path);
  state_->bytes = state_->mapping.bytes();
  state_->parse();
}

File::File(Hidden<State> state) : state_(std::move(state)) {}

File File::view(std::span<const std::byte> bytes, std::string name) {
  auto state = Hidden<State>::make();
  state->name = std::move(name);
  state->bytes = bytes;
  state->parse();
  return File(std::move(state));
}

const std::string& File::name() const noexcept { return state_->name; }
void File::release(std::span<const std::byte> bytes) const noexcept {
  state_->mapping.release(bytes);
}
void File::release() const noexcept { state_->mapping.release(state_->mapping.bytes()); }

std::uint32_t File::version() const noexcept { return state_->version; }
std::uint64_t File::alignment() const noexcept { return state_->alignment; }
std::uint64_t File::data_offset() const noexcept { return state_->data_offset; }
std::uint64_t File::size() const noexcept { return state_->bytes.size(); }
std::span<const Entry> File::metadata() const noexcept { return state_->metadata; }
std::span<const Tensor> File::tensors() const noexcept { return state_->tensors; }

const Entry* File::entry(std::string_view key) const noexcept {
  return find_entry(state_->metadata, state_->by_key, key);
}

const Value* File::find(std::string_view key) const noexcept {
  const Entry* found = entry(key);
  return found == nullptr ? nullptr : &found->value;
}

const Tensor* File::find_tensor(std::string_view name) const noexcept {
  const auto name_at = [&](std::size_t i) { return state_->tensors[i].name; };
  const auto found = std::ranges::lower_bound(state_->by_name, name, {}, name_at);
  if (found == state_->by_name.end() || name_at(*found) != name) return nullptr;
  return &state_->tensors[*found];
}

const Tensor& File::tensor(std::string_view name) const {
  const Tensor* found = find_tensor(name);
  if (found == nullptr) not_found(state_->name, "tensor", name);
  return *found;
}

std::uint32_t File::u32(std::string_view key) const {
  return integer_of<std::uint32_t>(state_->name, required(state_->name, entry(key), key), "u32");
}
std::uint64_t File::u64(std::string_view key) const {
  return integer_of<std::uint64_t>(state_->name, required(state_->name, entry(key), key), "u64");
}
std::int32_t File::i32(std::string_view key) const {
  return integer_of<std::int32_t>(state_->name, required(state_->name, entry(key), key), "i32");
}
float File::f32(std::string_view key) const {
  return f32_of(state_->name, required(state_->name, entry(key), key));
}
bool File::boolean(std::string_view key) const {
  return boolean_of(state_->name, required(state_->name, entry(key), key));
}
std::string_view File::string(std::string_view key) const {
  return string_of(state_->name, required(state_->name, entry(key), key));
}

std::uint32_t File::u32(std::string_view key, std::uint32_t otherwise) const {
  return entry(key) == nullptr ? otherwise : u32(key);
}
std::uint64_t File::u64(std::string_view key, std::uint64_t otherwise) const {
  return entry(key) == nullptr ? otherwise : u64(key);
}
std::int32_t File::i32(std::string_view key, std::int32_t otherwise) const {
  return entry(key) == nullptr ? otherwise : i32(key);
}
float File::f32(std::string_view key, float otherwise) const {
  return entry(key) == nullptr ? otherwise : f32(key);
}
bool File::boolean(std::string_view key, bool otherwise) const {
  return entry(key) == nullptr ? otherwise : boolean(key);
}
std::string_view File::string(std::string_view key, std::string_view otherwise) const {
  return entry(key) == nullptr ? otherwise : string(key);
}

const Value& File::array(std::string_view key, ValueType element) const {
  const Entry& found = required(state_->name, entry(key), key);
  if (found.value.type() != ValueType::array || found.value.element_type() != element) {
    mismatch(state_->name, found, format_text("an array of {}", to_string(element)));
  }
  return found.value;
}

}  // namespace ptxgen::inline v0::gguf
