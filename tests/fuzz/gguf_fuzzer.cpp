// tests/fuzz/gguf_fuzzer.cpp - GGUF files of any bytes
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>

#include "model/printable.hpp"
#include "ptxgen/model/gguf.hpp"
#include "ptxgen/model/tokenizer.hpp"
#include "ptxgen/support/error.hpp"

namespace {

using namespace ptxgen;

void require(bool holds) {
  if (!holds) std::abort();
}

bool is_within(std::span<const std::byte> part, std::span<const std::byte> bytes) {
  return part.empty() ||
         (part.data() >= bytes.data() && part.data() + part.size() <= bytes.data() + bytes.size());
}

void check_value(const gguf::Value& value, std::span<const std::byte> bytes) {
  require(is_within(value.bytes(), bytes));
  std::uint64_t elements = 0;
  for (const gguf::Value& element : value) {
    require(element.type() == value.element_type());
    check_value(element, bytes);
    ++elements;
  }
  require(elements == value.size());
  if (const auto text = value.string()) require(printable(*text, 40).size() <= 43);
}

void check_tensors(const gguf::File& file, std::span<const std::byte> bytes) {
  std::uint64_t total = 0;
  for (const gguf::Tensor& tensor : file.tensors()) {
    require(&file.tensor(tensor.name) == &tensor);
    require(tensor.data.size() == tensor.bytes && tensor.bytes != 0);
    require(is_within(tensor.data, bytes));
    require((tensor.data.data() - bytes.data()) % static_cast<std::ptrdiff_t>(file.alignment()) ==
            0);
    require(tensor.dims()[0] % tensor.type->block_values == 0);
    total += tensor.bytes;
  }
  require(total <= bytes.size());  // they do not overlap
}

}  // namespace

// Ids of the vocabulary for any text, here that of all tokens; and back, in one piece or in parts.
void check_tokenizer(const gguf::File& file) {
  try {
    const model::Tokenizer tokenizer = model::Tokenizer::read(file);
    const gguf::Value& tokens = file.array("tokenizer.ggml.tokens", gguf::ValueType::string);
    std::string text(reinterpret_cast<const char*>(tokens.bytes().data()), tokens.bytes().size());
    text += "a<s>ab b\xff\n\n 12";
    for (const bool parse_special : {false, true}) {
      const auto ids =
          tokenizer.encode(text, {.add_special = true, .parse_special = parse_special});
      for (const std::uint32_t id : ids) require(id < tokenizer.size());
      model::TextStream stream(tokenizer);
      std::string joined;
      for (const std::uint32_t id : ids) joined += stream.push(id);
      joined += stream.finish();
      require(joined == tokenizer.decode(ids));
    }
    for (const std::uint32_t id : tokenizer.ends()) require(tokenizer.is_end(id));
    (void)tokenizer.chat({});
  } catch (const Error& error) {
    require(error.stage == Stage::Io && !error.code.empty() && error.file == "input");
  }
}

// What is opened is inside the input; what is refused has a code and a place.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span bytes(reinterpret_cast<const std::byte*>(data), size);
  try {
    const gguf::File file = gguf::File::view(bytes, "input");
    for (const gguf::Entry& entry : file.metadata()) {
      require(file.find(entry.key) == &entry.value);
      check_value(entry.value, bytes);
    }
    check_tensors(file, bytes);
    check_tokenizer(file);
  } catch (const Error& error) {
    require(error.stage == Stage::Io && !error.code.empty());
    require(error.message.find(" at byte ") != std::string::npos);
  }
  return 0;
}
