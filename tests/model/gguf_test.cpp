// tests/model/gguf_test.cpp - values and tensors of good GGUF files
#include "ptxgen/model/gguf.hpp"

#include <catch2/catch.hpp>
#include <fstream>
#include <limits>

#include "model/gguf_writer.hpp"
#include "ptxgen/support/error.hpp"
#include "support/temporary_directory.hpp"

using namespace ptxgen;
using namespace ptxgen::test;
using gguf::File;
using gguf::Value;

namespace {

// "code: message" of the error that a call throws.
template <class Call>
std::string error_of(const Call& call) {
  try {
    (void)call();
  } catch (const Error& error) {
    CHECK(error.stage == Stage::Io);
    return error.code + ": " + error.message;
  }
  return "no error";
}

std::vector<std::string> texts(const Value& value) {
  std::vector<std::string> all;
  for (const Value& element : value) all.emplace_back(element.string().value());
  return all;
}

}  // namespace

TEST_CASE("every type of value is read as it was written") {
  const std::string bytes = everything().bytes();
  const File file = File::view(as_bytes(bytes), "everything");
  CHECK(file.version() == 3);
  CHECK(file.size() == bytes.size());
  CHECK(file.metadata().size() == 19);
  CHECK(file.metadata()[0].key == "general.architecture");
  CHECK(file.string("general.architecture") == "llama");
  CHECK(file.find("test.u8")->unsigned_integer() == 0xff);
  CHECK(file.find("test.i8")->integer() == -128);
  CHECK(file.find("test.u16")->unsigned_integer() == 0xffff);
  CHECK(file.find("test.i16")->integer() == -32768);
  CHECK(file.find("test.u32")->integer() == 0xffffffff);
  CHECK(file.find("test.i32")->integer() == std::numeric_limits<std::int32_t>::min());
  CHECK(file.find("test.u64")->unsigned_integer() == ~std::uint64_t{0});
  CHECK_FALSE(file.find("test.u64")->integer().has_value());
  CHECK(file.find("test.i64")->integer() == std::numeric_limits<std::int64_t>::min());
  CHECK_FALSE(file.find("test.i64")->unsigned_integer().has_value());
  CHECK(file.find("test.f32")->number() == double{1e-5F});
  CHECK(file.find("test.f64")->number() == 0.1);
  CHECK(file.find("test.false")->boolean() == false);
  CHECK(file.find("test.true")->boolean() == true);
  CHECK(file.find("test") == nullptr);
  CHECK(file.find("") == nullptr);
}

TEST_CASE("a value has no other type than its own") {
  const std::string bytes = everything().bytes();
  const File file = File::view(as_bytes(bytes), "everything");
  for (const gguf::Entry& entry : file.metadata()) {
    INFO(entry.key);
    const Value& value = entry.value;
    int readings = 0;
    if (value.integer() || value.unsigned_integer()) ++readings;
    if (value.number()) ++readings;
    if (value.boolean()) ++readings;
    if (value.string()) ++readings;
    if (value.type() == ValueType::array) ++readings;
    CHECK(readings == 1);
    CHECK(value.bytes().data() == as_bytes(bytes).data() + value.offset());
  }
  CHECK(Value().string() == "");
}

TEST_CASE("arrays are read element by element, nested ones too") {
  const std::string bytes = everything().bytes();
  const File file = File::view(as_bytes(bytes), "everything");
  const Value& tokens = file.array("test.tokens", ValueType::string);
  CHECK(tokens.size() == 3);
  CHECK(texts(tokens) == std::vector<std::string>{"<s>", "", "\xff"});
  const Value& empty = file.array("test.empty", ValueType::f64);
  CHECK(empty.size() == 0);
  CHECK(empty.begin() == empty.end());
  const Value& number = *file.find("test.u8");
  CHECK(number.begin() == number.end());
  std::vector<double> scores;
  for (const Value& score : file.array("test.scores", ValueType::f32)) {
    scores.push_back(score.number().value());
  }
  CHECK(scores == std::vector<double>{-1.5, 0});
  int numbers = 0;
  for (const Value& third : file.array("test.nested", ValueType::array)) {
    for (const Value& second : third) {
      for (const Value& first : second) {
        CHECK(first.element_type() == ValueType::i16);
        for (const Value& element : first) {
          CHECK(element.integer() == -2);
          ++numbers;
        }
      }
    }
  }
  CHECK(numbers == 8);
}

TEST_CASE("every type of tensor is read as it was written") {
  const GgufWriter writer = everything();
  const std::string bytes = writer.bytes();
  const File file = File::view(as_bytes(bytes), "everything");
  REQUIRE(file.tensors().size() == writer.tensors.size());
  CHECK(file.tensors().size() == gguf::tensor_types().size() + 2);
  CHECK(file.data_offset() % 32 == 0);
  for (const gguf::TensorType& type : gguf::tensor_types()) {
    const gguf::Tensor& tensor = file.tensor(std::string(type.name) + ".weight");
    INFO(tensor.name);
    CHECK(tensor.type == &type);
    CHECK(tensor.dim_count == 2);
    CHECK(tensor.dims()[0] == 2 * type.block_values);
    CHECK(tensor.dims()[1] == 3);
    CHECK(tensor.values == 6 * type.block_values);
    CHECK(tensor.bytes == std::uint64_t{6} * type.block_bytes);
    CHECK(tensor.data.size() == tensor.bytes);
    CHECK(tensor.data.data() == as_bytes(bytes).data() + file.data_offset() + tensor.offset);
    CHECK(tensor.data[0] == std::byte{static_cast<unsigned char>(type.id)});
    CHECK(tensor.offset % 32 == 0);
  }
  const gguf::Tensor& four = file.tensor("four");
  CHECK(std::vector(four.dims().begin(), four.dims().end()) ==
        std::vector<std::uint64_t>{2, 3, 1, 2});
  CHECK(four.values == 12);
  CHECK(file.find_tensor("five") == nullptr);
}

TEST_CASE("the table of tensor types has the numbers and sizes of ggml") {
  CHECK(gguf::tensor_types().size() == 20);
  CHECK(gguf::find_tensor_type(14)->name == "Q6_K");
  CHECK(gguf::find_tensor_type("Q3_K")->block_bytes == 110);
  CHECK(gguf::find_tensor_type("Q4_K")->element == ElementType::q4_k);
  CHECK_FALSE(gguf::find_tensor_type("I8")->element.has_value());
  CHECK(gguf::find_tensor_type(20) == nullptr);
  CHECK(gguf::find_tensor_type("q4_k") == nullptr);
  CHECK(gguf::tensor_type_name(8) == "Q8_0");
  CHECK(gguf::tensor_type_name(20) == "IQ4_NL");
  CHECK(gguf::tensor_type_name(999).empty());
}

TEST_CASE("getters convert where nothing is lost and say what does not fit") {
  const std::string bytes = everything().bytes();
  const File file = File::view(as_bytes(bytes), "everything");
  CHECK(file.u32("test.u8") == 255);
  CHECK(file.u32("test.u32") == 0xffffffff);
  CHECK(file.u64("test.u64") == ~std::uint64_t{0});
  CHECK(file.i32("test.i8") == -128);
  CHECK(file.f32("test.f32") == 1e-5F);
  CHECK(file.f32("test.f64") == 0.1F);
  CHECK(file.boolean("test.true"));
  const auto at = [&](std::string_view key) {
    return "key '" + std::string(key) + "' at byte " + std::to_string(file.find(key)->offset());
  };
  CHECK(error_of([&] { return file.u32("test.i8"); }) ==
        "out-of-range: " + at("test.i8") + ": -128 does not fit into u32");
  CHECK(error_of([&] { return file.i32("test.u32"); }) ==
        "out-of-range: " + at("test.u32") + ": 4294967295 does not fit into i32");
  CHECK(error_of([&] { return file.u32("test.u64"); }) ==
        "out-of-range: " + at("test.u64") + ": 18446744073709551615 does not fit into u32");
  CHECK(error_of([&] { return file.u64("test.f32"); }) ==
        "type-mismatch: " + at("test.f32") + ": the value is an f32; expects an integer");
  CHECK(error_of([&] { return file.f32("test.i8"); }) ==
        "type-mismatch: " + at("test.i8") + ": the value is an i8; expects a float");
  CHECK(error_of([&] { return file.boolean("test.u8"); }) ==
        "type-mismatch: " + at("test.u8") + ": the value is a u8; expects a bool");
  CHECK(error_of([&] { return file.string("test.tokens"); }) ==
        "type-mismatch: " + at("test.tokens") +
            ": the value is an array of string; expects a string");
  CHECK(error_of([&] { return file.array("test.scores", ValueType::i32); }) ==
        "type-mismatch: " + at("test.scores") +
            ": the value is an array of f32; expects an array of i32");
}

TEST_CASE("a missing key is an error or the default, a key of another type is always an error") {
  const std::string bytes = everything().bytes();
  const File file = File::view(as_bytes(bytes), "everything");
  CHECK(error_of([&] { return file.u32("llama.block_count"); }) ==
        "not-found: the file has no key 'llama.block_count'");
  CHECK(error_of([&] { return file.array("x\x1b", ValueType::u8); }) ==
        "not-found: the file has no key 'x\\x1b'");
  CHECK(error_of([&] { return file.tensor("output.weight"); }) ==
        "not-found: the file has no tensor 'output.weight'");
  CHECK(file.u32("missing", 7) == 7);
  CHECK(file.u64("missing", 8) == 8);
  CHECK(file.i32("missing", -9) == -9);
  CHECK(file.f32("missing", 0.5F) == 0.5F);
  CHECK(file.boolean("missing", true));
  CHECK(file.string("missing", "text") == "text");
  CHECK(file.u32("test.u8", 7) == 255);
  CHECK(file.i32("test.i8", 7) == -128);
  CHECK(file.u64("test.u8", 7) == 255);
  CHECK(file.f32("test.f32", 7) == 1e-5F);
  CHECK_FALSE(file.boolean("test.false", true));
  CHECK(file.string("general.architecture", "text") == "llama");
  CHECK(error_of([&] { return file.u32("test.true", 7); }).starts_with("type-mismatch: "));
}

TEST_CASE("version 2, other alignments, and files without tensors or keys") {
  GgufWriter writer;
  writer.version = 2;
  CHECK(File::view(as_bytes(writer.bytes()), "empty").version() == 2);
  writer.alignment = 4096;
  writer.key("general.alignment", written(ValueType::u32, 4096));
  writer.tensor("a", {3}, "F16").tensor("b", {5}, "F64");
  const std::string bytes = writer.bytes();
  const File file = File::view(as_bytes(bytes), "aligned");
  CHECK(file.alignment() == 4096);
  CHECK(file.data_offset() == 4096);
  CHECK(file.tensor("b").offset == 4096);
  CHECK(file.tensor("b").bytes == 40);
}

TEST_CASE("a file on disk is mapped; what cannot be mapped is an error") {
  const TemporaryDirectory folder;
  const std::string path = folder.file("model.gguf");
  write_file(path, everything().bytes());
  File file(path);
  const File moved = std::move(file);
  CHECK(moved.name() == path);
  CHECK(moved.string("general.architecture") == "llama");
  CHECK(reinterpret_cast<std::uintptr_t>(moved.tensor("F64.weight").data.data()) % 32 == 0);
  CHECK(error_of([&] { return File(folder.file("none")); }) ==
        "read: cannot map the file: No such file or directory");
  CHECK(error_of([&] { return File(folder.path()); }) ==
        "read: cannot map the file: it is a folder, a pipe or a device");
  write_file(path + "2", "");
  CHECK(error_of([&] { return File(path + "2"); }) ==
        "truncated: header at byte 0: the file ends here: 4 bytes needed, 0 left");
  try {
    (void)File(path + "2");
  } catch (const Error& error) {
    CHECK(error.file == path + "2");
  }
}

TEST_CASE("released bytes of a file come back when they are read") {
  const TemporaryDirectory folder;
  const std::string path = folder.file("model.gguf");
  constexpr std::size_t kBytes = std::size_t{16} << 20;
  GgufWriter writer;
  writer.tensor("large", {kBytes}, "I8");
  write_file(path, writer.bytes());
  const File file(path);
  const std::span<const std::byte> data = file.tensor("large").data;
  const auto sum = [&] {
    std::uint64_t all = 0;
    for (const std::byte byte : data) all += std::to_integer<std::uint64_t>(byte);
    return all;
  };
  // Pages of files in memory, of 4096 bytes or more.
  const auto shared_pages = [] {
    std::ifstream statm("/proc/self/statm");
    std::size_t size = 0, resident = 0, shared = 0;
    statm >> size >> resident >> shared;
    return shared;
  };
  const std::uint64_t expected = sum();
  const std::size_t before = shared_pages();
  file.release(data);
  const std::size_t after = shared_pages();
  if (before != 0) CHECK(before - after >= kBytes / 65536 - 2);
  CHECK(sum() == expected);
  file.release();
  if (before != 0) CHECK(before - shared_pages() >= kBytes / 65536 - 2);
  CHECK(sum() == expected);
  file.release({});
  file.release(as_bytes("elsewhere"));
  const std::string bytes = writer.bytes();
  const File view = File::view(as_bytes(bytes), "view");
  view.release(view.tensor("large").data);
  view.release();
  CHECK(view.tensor("large").data[5] == data[5]);
  CHECK(view.name() == "view");
}
