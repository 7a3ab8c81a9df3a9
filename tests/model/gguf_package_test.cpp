// tests/model/gguf_package_test.cpp - files that PyPI's gguf wrote
#include <algorithm>
#include <catch2/catch.hpp>
#include <iostream>
#include <nlohmann/json.hpp>

#include "ptxgen/model/gguf.hpp"
#include "ptxgen/support/error.hpp"
#include "ptxgen/support/settings.hpp"
#include "support/harness.hpp"
#include "support/subprocess.hpp"
#include "support/temporary_directory.hpp"

using namespace ptxgen;
using namespace ptxgen::test;
using gguf::File;
using gguf::Value;
using gguf::ValueType;
using nlohmann::json;

namespace {

// Whether the package was found; the files are in the folder then.
bool write_models(const TemporaryDirectory& folder) {
  const SubprocessResult result = run_program({"/usr/bin/env", "PYTHONPATH=" GGUF_PACKAGES, PYTHON,
                                               GGUF_SCRIPT, folder.path(), std::to_string(seed())});
  if (result.out.starts_with("SKIP ")) {
    skip("scripts/setup installs PyPI's gguf: " + result.out.substr(5));
    return false;
  }
  INFO(result.out << result.err);
  REQUIRE(result.exit_code == 0);
  std::cout << result.out;
  return true;
}

json as_json(const Value& value) {
  if (value.type() == ValueType::array) {
    json elements = json::array();
    for (const Value& element : value) elements.push_back(as_json(element));
    return elements;
  }
  if (const auto text = value.string()) return *text;
  if (const auto flag = value.boolean()) return *flag;
  if (const auto number = value.number()) return *number;
  if (const auto number = value.unsigned_integer()) return *number;
  return value.integer().value();
}

std::string hex(std::span<const std::byte> bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const std::byte byte : bytes) {
    text += digits[std::to_integer<std::size_t>(byte >> 4)];
    text += digits[std::to_integer<std::size_t>(byte & std::byte{15})];
  }
  return text;
}

void check_metadata(const File& file, const json& expected) {
  for (const auto& [key, value] : expected.at("metadata").items()) {
    INFO(key);
    const Value* found = file.find(key);
    REQUIRE(found != nullptr);
    CHECK(as_json(*found) == value);
    const bool is_array = found->type() == ValueType::array;
    CHECK(to_string(is_array ? found->element_type() : found->type()) ==
          expected.at("types").at(key).get<std::string>());
  }
}

void check_tensors(const File& file, const json& expected) {
  CHECK(file.tensors().size() == expected.at("tensors").size());
  for (const auto& [name, tensor] : expected.at("tensors").items()) {
    INFO(name);
    const gguf::Tensor& found = file.tensor(name);
    CHECK(found.type->name == tensor.at("type").get<std::string>());
    CHECK(json(found.dims()) == tensor.at("dims"));
    CHECK(hex(found.data) == tensor.at("data").get<std::string>());
  }
}

}  // namespace

TEST_CASE("files of PyPI's gguf are read as it wrote them") {
  const TemporaryDirectory folder(Settings::from_environment().temp_dir);
  if (!write_models(folder)) return;
  const json expected = json::parse(read_file(folder.file("expected.json")));
  REQUIRE(expected.at("metadata").size() == 17);
  REQUIRE(expected.at("tensors").size() == gguf::tensor_types().size() - 1);  // without Q8_1
  for (const char* name : {"model.gguf", "aligned.gguf"}) {
    INFO(name);
    const File file(folder.file(name));
    CHECK(file.version() == 3);
    CHECK(file.alignment() == (std::string_view(name) == "aligned.gguf" ? 128 : 32));
    CHECK(file.string("general.architecture") == "llama");
    check_metadata(file, expected);
    check_tensors(file, expected);
  }
  try {
    (void)File(folder.file("big.gguf"));
    FAIL("a big-endian file was opened");
  } catch (const Error& error) {
    CHECK(error.code == "big-endian");
  }
  // Every type that the package knows has this name here, and these sizes if it is supported.
  for (const auto& [number, row] : expected.at("blocks").items()) {
    const auto id = static_cast<std::uint32_t>(std::stoul(number));
    INFO(number << " " << row[0]);
    CHECK(gguf::tensor_type_name(id) == row[0].get<std::string>());
    const gguf::TensorType* type = gguf::find_tensor_type(id);
    if (type == nullptr) continue;
    CHECK(type->block_values == row[1]);
    // The package still counts f32 fields for Q8_1, where ggml has f16.
    CHECK(type->block_bytes + (type->name == "Q8_1" ? 4 : 0) == row[2]);
  }
}
