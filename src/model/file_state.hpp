// src/model/file_state.hpp - what an open GGUF file holds, and its parser
#pragma once

#include <string>
#include <vector>

#include "model/cursor.hpp"
#include "model/mapped_file.hpp"
#include "ptxgen/model/gguf.hpp"

namespace ptxgen::inline v0::gguf {

struct File::State {
  std::string name;
  MappedFile mapping;  // empty: the bytes are the caller's
  std::span<const std::byte> bytes;
  std::uint32_t version = 0;
  std::uint64_t alignment = kDefaultAlignment;
  std::uint64_t data_offset = 0;
  std::vector<Entry> metadata;
  std::vector<Tensor> tensors;
  std::vector<std::size_t> by_key;   // places in `metadata`, by key
  std::vector<std::size_t> by_name;  // places in `tensors`, by name

  /// From `name` and `bytes` everything else. Throws `Error` as `File`.
  void parse();

 private:
  void read_metadata(Cursor& cursor, std::uint64_t count);
  void read_alignment();
  void read_tensors(Cursor& cursor, std::uint64_t count);
  void place_tensors();
};

/// Where "general.alignment" and other keys are: null if there is none.
[[nodiscard]] const Entry* find_entry(const std::vector<Entry>& metadata,
                                      const std::vector<std::size_t>& by_key,
                                      std::string_view key) noexcept;

/// The description of a tensor, without its data. Throws `Error` as `File`; `file_bytes` is the
/// size of the file.
[[nodiscard]] Tensor read_tensor_info(Cursor& cursor, std::uint64_t file_bytes);
/// Sets the data of each tensor. Throws "misaligned", "out-of-file" or "overlap".
struct DataSection {
  std::string_view file;
  std::span<const std::byte> bytes;  // of the file
  std::uint64_t offset = 0;
  std::uint64_t alignment = 0;
};
void place_tensor(Tensor& tensor, const DataSection& section);
void check_overlap(std::span<const Tensor> tensors, std::string_view file);

}  // namespace ptxgen::inline v0::gguf
