// src/support/npy.cpp - NumPy's .npy files
#include "support/npy.hpp"

#include <utility>

#include "ptxgen/support/error.hpp"
#include "support/numbers.hpp"

namespace ptxgen::inline v0 {

namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

// Reads the header: a Python dictionary with string, bool and tuple values.
class HeaderReader {
 public:
  HeaderReader(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  void read(NpyArray& array) {
    bool has_type = false;
    bool has_order = false;
    bool has_shape = false;
    expect('{');
    while (!next_is('}')) {
      const std::string key = string();
      expect(':');
      if (key == "descr") {
        if (next_is('[')) fail("its elements are records; use an array of one plain type");
        array.type = string();
        has_type = true;
      } else if (key == "fortran_order") {
        fortran_ = boolean();
        has_order = true;
      } else if (key == "shape") {
        array.shape = tuple();
        has_shape = true;
      } else {
        fail("its header has the unknown key '" + key + "'");
      }
      if (!next_is('}')) expect(',');
    }
    if (!has_type || !has_order || !has_shape) {
      fail("its header lacks one of 'descr', 'fortran_order' and 'shape'");
    }
    if (fortran_ && array.shape.size() > 1) {
      fail("it is in Fortran order; save numpy.ascontiguousarray(a)");
    }
  }

  [[noreturn]] void fail(const std::string& why) const {
    Error error(Stage::Io, "npy", "cannot use the .npy file: " + why);
    error.file = file_;
    throw error.refresh();
  }

 private:
  [[noreturn]] void malformed() const { fail("its header is malformed"); }

  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  bool next_is(char c) {
    skip_space();
    return at_ < text_.size() && text_[at_] == c;
  }
  void expect(char c) {
    if (!next_is(c)) malformed();
    ++at_;
  }
  std::string string() {
    skip_space();
    if (at_ >= text_.size() || (text_[at_] != '\'' && text_[at_] != '"')) malformed();
    const std::size_t end = text_.find(text_[at_], at_ + 1);
    if (end == std::string_view::npos) malformed();
    const std::string result(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return result;
  }
  bool boolean() {
    skip_space();
    for (const bool value : {true, false}) {
      const std::string_view word = value ? "True" : "False";
      if (!text_.substr(at_).starts_with(word)) continue;
      at_ += word.size();
      return value;
    }
    malformed();
  }
  std::vector<std::uint64_t> tuple() {
    std::vector<std::uint64_t> values;
    expect('(');
    while (!next_is(')')) {
      std::string_view rest = text_.substr(at_);
      const auto value = take_number<std::uint64_t>(rest);
      if (!value) malformed();
      at_ = text_.size() - rest.size();
      values.push_back(*value);
      if (!next_is(')')) expect(',');
    }
    ++at_;
    return values;
  }

  std::string_view text_;
  const std::string& file_;
  std::size_t at_ = 0;
  bool fortran_ = false;
};

std::uint64_t little_endian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) {
    value = value << 8 | static_cast<unsigned char>(bytes[i]);
  }
  return value;
}

// Bytes of an element; fails for all but plain little-endian numbers.
std::uint32_t element_bytes(const std::string& type, const HeaderReader& reader) {
  const std::string quoted = "its elements are '" + type + "'";
  if (type.size() < 3) reader.fail(quoted + ", which is no type");
  if (type[0] == '>') {
    reader.fail(quoted + ", big endian; save a.astype(a.dtype.newbyteorder('<'))");
  }
  const std::uint32_t bytes =
      parse_number<std::uint32_t>(std::string_view(type).substr(2)).value_or(0);
  if (bytes == 0 || bytes > 8 || std::string_view("iufb").find(type[1]) == std::string_view::npos) {
    reader.fail(quoted + ", no integers or floats of 8 to 64 bits");
  }
  return bytes;
}

}  // namespace

NpyArray parse_npy(std::string content, const std::string& file) {
  const HeaderReader complaint({}, file);
  if (!content.starts_with(kMagic) || content.size() < 12) {
    complaint.fail("it does not begin with NumPy's magic bytes; write it by numpy.save");
  }
  const auto version = static_cast<unsigned char>(content[6]);
  if (version < 1 || version > 3) {
    complaint.fail("its format version is " + std::to_string(version) + "; 1, 2 and 3 are read");
  }
  const std::size_t length_bytes = version == 1 ? 2 : 4;
  const std::uint64_t length = little_endian(std::string_view(content).substr(8, length_bytes));
  const std::size_t begin = 8 + length_bytes;
  if (length > content.size() - begin) complaint.fail("it ends within its header");
  NpyArray array;
  HeaderReader reader(std::string_view(content).substr(begin, length), file);
  reader.read(array);
  array.element_bytes = element_bytes(array.type, reader);
  std::uint64_t bytes = array.element_bytes;
  for (const std::uint64_t extent : array.shape) {
    if (extent != 0 && bytes > ~std::uint64_t{0} / extent) reader.fail("its shape is too large");
    bytes *= extent;
  }
  const std::uint64_t held = content.size() - begin - length;
  if (held != bytes) {
    reader.fail("its shape needs " + std::to_string(bytes) + " bytes of elements, it holds " +
                std::to_string(held));
  }
  content.erase(0, begin + length);
  array.data = std::move(content);
  return array;
}

std::string npy_header(std::string_view type, std::span<const std::uint64_t> shape) {
  std::string text = "{'descr': '" + std::string(type) + "', 'fortran_order': False, 'shape': (";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  }
  text += shape.size() == 1 ? ",), }" : "), }";
  // Elements begin at a multiple of 64 bytes, after a newline.
  constexpr std::size_t kAlignment = 64;
  constexpr std::size_t kFixed = 10;
  const std::size_t full = (kFixed + text.size() + 1 + kAlignment - 1) / kAlignment * kAlignment;
  text.append(full - kFixed - 1 - text.size(), ' ');
  text += '\n';
  std::string header(kMagic);
  header += '\x01';
  header += '\0';
  header += static_cast<char>(text.size() & 0xff);
  header += static_cast<char>(text.size() >> 8);
  return header + text;
}

}  // namespace ptxgen::inline v0
