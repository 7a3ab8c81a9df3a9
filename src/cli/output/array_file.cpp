// src/cli/output/array_file.cpp - arrays of numbers as NumPy files
#include "cli/output/array_file.hpp"

#include "cli_common/files.hpp"
#include "support/npy.hpp"

namespace ptxgen::cli {

void write_array(const std::string& path, std::span<const float> values,
                 std::span<const std::uint64_t> shape) {
  std::string content = npy_header("<f4", shape);
  const auto bytes = std::as_bytes(values);
  content.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  write_output(path, content);
}

}  // namespace ptxgen::cli
