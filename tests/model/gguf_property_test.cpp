// tests/model/gguf_property_test.cpp - GGUF files: truncated, damaged, random
#include <rapidcheck/catch.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "model/gguf_writer.hpp"
#include "ptxgen/model/gguf.hpp"
#include "ptxgen/support/error.hpp"

using namespace ptxgen;
using namespace ptxgen::test;
using gguf::File;
using gguf::Value;

namespace {

// The code of the error that opening throws, or "opened".
std::string outcome(std::string_view bytes) {
  try {
    (void)File::view(as_bytes(bytes), "model.gguf");
  } catch (const Error& error) {
    return error.code;
  }
  return "opened";
}

bool is_same(const Value& value, const WrittenValue& expected) {
  if (value.type() != expected.type) return false;
  if (expected.type == ValueType::string) return value.string() == expected.text;
  if (expected.type == ValueType::array) {
    return value.element_type() == expected.element_type &&
           std::equal(expected.elements.begin(), expected.elements.end(), value.begin(),
                      [](const WrittenValue& a, const Value& b) { return is_same(b, a); }) &&
           value.size() == expected.elements.size();
  }
  std::string bytes;
  append_number(bytes, expected.bits, info(expected.type).bytes);
  return std::ranges::equal(value.bytes(), as_bytes(bytes));
}

WrittenValue random_value(ValueType type, int depth) {
  if (type == ValueType::string) return written(*rc::gen::arbitrary<std::string>());
  if (type == ValueType::boolean) return written(type, *rc::gen::inRange<std::uint64_t>(0, 2));
  if (type != ValueType::array) return written(type, *rc::gen::arbitrary<std::uint64_t>());
  const auto pick = [&] { return static_cast<ValueType>(*rc::gen::inRange(0, 13)); };
  ValueType element = pick();
  if (element == ValueType::array && depth == 4) element = ValueType::u16;
  WrittenValue array = written_array(element, {});
  const int count = *rc::gen::inRange(0, 4);
  for (int i = 0; i < count; ++i) array.elements.push_back(random_value(element, depth + 1));
  return array;
}

struct RandomFile {
  GgufWriter writer;
  std::vector<std::pair<std::string, WrittenValue>> keys;
};

RandomFile random_file() {
  RandomFile file;
  file.writer.version = *rc::gen::element(2U, 3U);
  if (*rc::gen::arbitrary<bool>()) {
    file.writer.alignment = std::uint64_t{1} << *rc::gen::inRange(3, 9);
    file.keys.emplace_back("general.alignment", written(ValueType::u32, file.writer.alignment));
  }
  const int keys = *rc::gen::inRange(0, 6);
  for (int i = 0; i < keys; ++i) {
    const auto type = static_cast<ValueType>(*rc::gen::inRange(0, 13));
    file.keys.emplace_back("key." + std::to_string(i), random_value(type, 1));
  }
  for (const auto& [key, value] : file.keys) file.writer.key(key, value);
  const int tensors = *rc::gen::inRange(0, 5);
  for (int i = 0; i < tensors; ++i) {
    const auto& types = gguf::tensor_types();
    const gguf::TensorType& type = types[*rc::gen::inRange<std::size_t>(0, types.size())];
    std::vector<std::uint64_t> dims(*rc::gen::inRange<std::size_t>(1, 5));
    for (std::uint64_t& dim : dims) dim = *rc::gen::inRange<std::uint64_t>(1, 4);
    dims[0] *= type.block_values;
    file.writer.tensor("tensor." + std::to_string(i), dims, type.name);
  }
  return file;
}

void check_same(const File& file, const RandomFile& expected) {
  RC_ASSERT(file.version() == expected.writer.version);
  RC_ASSERT(file.alignment() == expected.writer.alignment);
  RC_ASSERT(file.metadata().size() == expected.keys.size());
  for (const auto& [key, value] : expected.keys) {
    const Value* found = file.find(key);
    RC_ASSERT(found != nullptr);
    RC_ASSERT(is_same(*found, value));
  }
  RC_ASSERT(file.tensors().size() == expected.writer.tensors.size());
  for (const WrittenTensor& tensor : expected.writer.tensors) {
    const gguf::Tensor& found = file.tensor(tensor.name);
    RC_ASSERT(std::ranges::equal(found.dims(), tensor.dims));
    RC_ASSERT(found.type->id == tensor.type);
    const std::string_view data = std::string_view(expected.writer.data)
                                      .substr(tensor.offset, static_cast<std::size_t>(found.bytes));
    RC_ASSERT(std::ranges::equal(found.data, as_bytes(data)));
  }
}

// Reads every byte of a view, which a sanitizer watches.
std::uint64_t sum_of(const Value& value) {
  std::uint64_t sum = 0;
  for (const std::byte byte : value.bytes()) sum += std::to_integer<std::uint64_t>(byte);
  for (const Value& element : value) sum += sum_of(element);
  return sum;
}
std::uint64_t sum_of(const File& file) {
  std::uint64_t sum = 0;
  for (const gguf::Entry& entry : file.metadata()) sum += entry.key.size() + sum_of(entry.value);
  for (const gguf::Tensor& tensor : file.tensors()) {
    for (const std::byte byte : tensor.data) sum += std::to_integer<std::uint64_t>(byte);
  }
  return sum;
}

}  // namespace

TEST_CASE("a file that is truncated at any byte is refused") {
  const std::string bytes = everything().bytes();
  REQUIRE(outcome(bytes) == "opened");
  std::set<std::string> codes;
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    // A copy of that size: a read after its end is seen by a sanitizer.
    const std::string part = bytes.substr(0, size);
    codes.insert(outcome(part));
  }
  CHECK(codes == std::set<std::string>{"bad-count", "out-of-file", "truncated"});
}

TEST_CASE("metadata alone that is truncated at any byte is refused") {
  GgufWriter writer = everything();
  writer.tensors.clear();
  const std::string bytes = writer.bytes();
  REQUIRE(outcome(bytes) == "opened");
  std::set<std::string> codes;
  for (std::size_t size = 0; size < bytes.size(); ++size)
    codes.insert(outcome(bytes.substr(0, size)));
  CHECK(codes == std::set<std::string>{"bad-count", "truncated"});
}

TEST_CASE("random files are read as they were written") {
  rc::prop("keys, values, tensors", [] {
    const RandomFile random = random_file();
    const std::string bytes = random.writer.bytes();
    check_same(File::view(as_bytes(bytes), "random"), random);
  });
}

TEST_CASE("a damaged file is refused, or its views stay within it") {
  const std::string bytes = everything().bytes();
  const std::size_t header = bytes.size() - everything().data.size();
  rc::prop("some bytes changed", [&] {
    std::string damaged = bytes;
    const int changes = *rc::gen::inRange(1, 4);
    for (int i = 0; i < changes; ++i) {
      damaged[*rc::gen::inRange<std::size_t>(0, header)] = *rc::gen::arbitrary<char>();
    }
    try {
      const File file = File::view(as_bytes(damaged), "damaged");
      RC_CLASSIFY(true, "opened");
      RC_ASSERT(sum_of(file) > 0);
    } catch (const Error& error) {
      RC_CLASSIFY(true, "refused");
      RC_ASSERT(error.message.find(" at byte ") != std::string::npos);
    }
  });
}

TEST_CASE("a number of the header that is changed in each of its bits is refused or opened") {
  const std::string bytes = everything().bytes();
  std::size_t opened = 0, refused = 0;
  const std::size_t header = bytes.size() - everything().data.size();
  for (std::size_t bit = 0; bit < 8 * header; ++bit) {
    std::string damaged = bytes;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    ++(outcome(damaged) == "opened" ? opened : refused);
  }
  // Characters and values may change, lengths and counts may not.
  CHECK(opened > header);
  CHECK(refused > header);
}
