// ptxgen/model/gguf.hpp - GGUF model files, memory-mapped
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ptxgen/model/gguf_metadata.hpp"
#include "ptxgen/model/gguf_types.hpp"
#include "ptxgen/support/hidden.hpp"

namespace ptxgen::inline v0 {

class MappedFile;  // src/support

namespace gguf {

/// A tensor and its data, a view into the file.
///
/// dims[0] is the contiguous dimension: a linear layer's weight has the dimensions {k, n} and is
/// W[n x k], row-major (layout R of a GEMV).
struct Tensor {
  std::string_view name;
  std::array<std::uint64_t, 4> dims{1, 1, 1, 1};  ///< values; 1 beyond `dimensions`
  std::uint32_t dimensions = 0;                   ///< 0 (one value) to 4
  TensorType type = TensorType::F32;
  std::uint64_t offset = 0;         ///< of the data in the data section, a multiple of the alignment
  std::uint64_t info_offset = 0;    ///< of the tensor's description in the file
  std::span<const std::byte> data;  ///< all of its bytes; aligned to min(file's alignment, 4096)

  /// The product of the dimensions.
  [[nodiscard]] constexpr std::uint64_t values() const noexcept {
    return dims[0] * dims[1] * dims[2] * dims[3];
  }
  [[nodiscard]] constexpr std::uint64_t bytes() const noexcept { return data.size(); }
  /// The dimensions that the file has.
  [[nodiscard]] constexpr std::span<const std::uint64_t> shape() const noexcept {
    return std::span(dims).first(dimensions);
  }
};

/// A GGUF file of version 2 or 3, little endian. Format: ggml's docs/gguf.md.
///
/// Everything is checked before the object exists: `Error` (stage io, "bad-gguf") names the key or
/// the tensor, the byte and the violated rule, docs/gguf.md lists the rules. Opening reads the
/// description only: metadata and tensors are views into the mapping, data is read when touched.
/// The file must not be changed while it is open.
///
/// Moves, does not copy; views stay valid when it moves. Threads: const members from any thread at
/// once.
class File {
 public:
  /// Maps a regular file. Throws `Error` (stage io): "read" if the system refuses, "bad-gguf".
  [[nodiscard]] static File open(const std::string& path);
  /// The same for a file in memory, which must stay there. `name` is its name in messages.
  [[nodiscard]] static File parse(std::span<const std::byte> bytes, std::string name);

  File(File&&) noexcept;
  File& operator=(File&&) noexcept;
  ~File();

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] std::uint32_t version() const noexcept { return version_; }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }
  /// Of tensors in the data section, bytes: `general.alignment`, else 32.
  [[nodiscard]] std::uint64_t alignment() const noexcept { return alignment_; }
  /// The first byte of the data section in the file.
  [[nodiscard]] std::uint64_t data_offset() const noexcept { return data_offset_; }

  [[nodiscard]] const Metadata& metadata() const noexcept { return metadata_; }
  /// In the order of the file.
  [[nodiscard]] std::span<const Tensor> tensors() const noexcept { return tensors_; }
  /// Null if there is no such tensor.
  [[nodiscard]] const Tensor* find_tensor(std::string_view name) const noexcept;
  /// Throws `Error` (stage io, "not-found").
  [[nodiscard]] const Tensor& tensor(std::string_view name) const;

 private:
  File();
  Hidden<MappedFile> mapping_;  // empty: parsed from the caller's memory
  std::string name_;
  std::uint32_t version_ = 0;
  std::uint64_t bytes_ = 0;
  std::uint64_t alignment_ = 0;
  std::uint64_t data_offset_ = 0;
  Metadata metadata_;
  std::vector<Tensor> tensors_;
  std::vector<std::size_t> by_name_;  // positions in tensors_
};

}  // namespace gguf

}  // namespace ptxgen::inline v0
