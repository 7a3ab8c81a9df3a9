// src/model/parse.cpp - a GGUF file from its bytes
#include <algorithm>
#include <bit>
#include <numeric>

#include "model/file_state.hpp"
#include "model/format.hpp"
#include "model/value_reader.hpp"

namespace ptxgen::inline v0::gguf {

namespace {

// The smallest of each: a name of one character and a number of one byte, or one dim.
constexpr std::uint64_t kMinEntryBytes = 8 + 1 + 4 + 1;
constexpr std::uint64_t kMinTensorBytes = 8 + 1 + 4 + 8 + 4 + 8;
// A count in the header can promise more than the file has; vectors grow beyond this.
constexpr std::uint64_t kMaxReserved = 4096;

void check_magic(Cursor& cursor) {
  const auto magic = cursor.take(4);
  const std::string_view text(reinterpret_cast<const char*>(magic.data()), magic.size());
  if (text == "GGUF") return;
  cursor.fail(
      "not-gguf", 0,
      format_text("this is no GGUF file: it begins with {:02x} {:02x} {:02x} {:02x}, "
                  "expects 47 47 55 46 (\"GGUF\")",
                  std::to_integer<unsigned>(magic[0]), std::to_integer<unsigned>(magic[1]),
                  std::to_integer<unsigned>(magic[2]), std::to_integer<unsigned>(magic[3])));
}

std::uint32_t read_version(Cursor& cursor) {
  const std::uint64_t at = cursor.offset();
  const std::uint32_t version = cursor.u32();
  if (version == 2 || version == 3) return version;
  if (version != 0 && (version & 0xffff) == 0) {
    cursor.fail("big-endian", at,
                "the file is big-endian; only little-endian files are read: convert it with "
                "gguf_convert_endian.py of PyPI's gguf");
  }
  if (version == 1) {
    cursor.fail("unsupported-version", at,
                "version 1, with counts of 32 bits, is not read: convert the model again, which "
                "writes version 3");
  }
  cursor.fail("unsupported-version", at,
              format_text("version {} is unknown; versions 2 and 3 are read", version));
}

Entry read_entry(Cursor& cursor) {
  Entry entry;
  entry.offset = cursor.offset();
  entry.key = cursor.string();
  if (entry.key.empty()) cursor.fail("bad-name", entry.offset, "the key is empty");
  cursor.subject.name = entry.key;
  ValueReader reader(cursor);
  const ValueType type = reader.type();
  entry.value = reader.value(type);
  return entry;
}

// Places in order of names, equal names in order of the file.
template <class Name>
std::vector<std::size_t> sorted_places(std::size_t count, const Name& name) {
  std::vector<std::size_t> places(count);
  std::iota(places.begin(), places.end(), std::size_t{0});
  std::ranges::stable_sort(places, {}, name);
  return places;
}

// The second of two places with one name, or `places.size()`.
template <class Name>
std::size_t find_duplicate(const std::vector<std::size_t>& places, const Name& name) {
  const auto found = std::ranges::adjacent_find(places, {}, name);
  return found == places.end() ? places.size() : *std::next(found);
}

}  // namespace

const Entry* find_entry(const std::vector<Entry>& metadata, const std::vector<std::size_t>& by_key,
                        std::string_view key) noexcept {
  const auto key_at = [&](std::size_t i) { return metadata[i].key; };
  const auto found = std::ranges::lower_bound(by_key, key, {}, key_at);
  return found == by_key.end() || metadata[*found].key != key ? nullptr : &metadata[*found];
}

void File::State::parse() {
  Cursor cursor(bytes, 0, name);
  check_magic(cursor);
  version = read_version(cursor);
  const std::uint64_t tensor_count = cursor.count("tensor", kMinTensorBytes);
  const std::uint64_t key_count = cursor.count("key", kMinEntryBytes);
  read_metadata(cursor, key_count);
  read_alignment();
  read_tensors(cursor, tensor_count);
  // Offsets are below 2^63 and the alignment below 2^32.
  data_offset = (cursor.offset() + alignment - 1) / alignment * alignment;
  place_tensors();
}

void File::State::read_metadata(Cursor& cursor, std::uint64_t count) {
  metadata.reserve(static_cast<std::size_t>(std::min(count, kMaxReserved)));
  for (std::uint64_t i = 0; i < count; ++i) {
    cursor.subject = {"key", {}, i + 1};
    metadata.push_back(read_entry(cursor));
  }
  const auto key_at = [&](std::size_t i) { return metadata[i].key; };
  by_key = sorted_places(metadata.size(), key_at);
  if (const std::size_t at = find_duplicate(by_key, key_at); at != metadata.size()) {
    const Entry& again = metadata[at];
    fail(name, "duplicate-name", {"key", again.key, 0}, again.offset,
         "an earlier key has this name");
  }
}

void File::State::read_alignment() {
  const Entry* entry = find_entry(metadata, by_key, "general.alignment");
  if (entry == nullptr) return;
  const Value& value = entry->value;
  const Subject subject = {"key", entry->key, 0};
  if (value.type() != ValueType::u32) {
    fail(name, "bad-alignment", subject, value.offset(),
         format_text("the alignment is {}; expects a u32", with_article(value.type())));
  }
  alignment = load<std::uint32_t>(value.bytes());
  if (!std::has_single_bit(alignment) || alignment < 8) {
    fail(name, "bad-alignment", subject, value.offset(),
         format_text("the alignment is {}; expects a power of two of 8 or more", alignment));
  }
}

void File::State::read_tensors(Cursor& cursor, std::uint64_t count) {
  tensors.reserve(static_cast<std::size_t>(std::min(count, kMaxReserved)));
  for (std::uint64_t i = 0; i < count; ++i) {
    cursor.subject = {"tensor", {}, i + 1};
    tensors.push_back(read_tensor_info(cursor, bytes.size()));
  }
  const auto name_at = [&](std::size_t i) { return tensors[i].name; };
  by_name = sorted_places(tensors.size(), name_at);
  if (const std::size_t at = find_duplicate(by_name, name_at); at != tensors.size()) {
    const Tensor& again = tensors[at];
    fail(name, "duplicate-name", {"tensor", again.name, 0}, again.info_offset,
         "an earlier tensor has this name");
  }
}

void File::State::place_tensors() {
  const DataSection section = {name, bytes, data_offset, alignment};
  for (Tensor& tensor : tensors) place_tensor(tensor, section);
  check_overlap(tensors, name);
}

}  // namespace ptxgen::inline v0::gguf
