// src/model/tensor_info.cpp - descriptions of tensors, and the places of their data
#include <algorithm>
#include <numeric>

#include "model/file_state.hpp"
#include "model/format.hpp"
#include "model/printable.hpp"

namespace ptxgen::inline v0::gguf {

namespace {

Subject subject_of(const Tensor& tensor) { return {"tensor", tensor.name, 0}; }

std::string supported_types() {
  std::string text;
  for (const TensorType& type : tensor_types()) {
    text += (text.empty() ? "" : ", ") + std::string(type.name);
  }
  return text;
}

void read_dims(Cursor& cursor, Tensor& tensor) {
  const std::uint64_t at = cursor.offset();
  tensor.dim_count = cursor.u32();
  if (tensor.dim_count == 0 || tensor.dim_count > tensor.shape.size()) {
    cursor.fail(
        "bad-dims", at,
        format_text("{} dims; a tensor has 1 to {}", tensor.dim_count, tensor.shape.size()));
  }
  tensor.shape.fill(1);
  for (std::uint32_t i = 0; i < tensor.dim_count; ++i) {
    const std::uint64_t dim_at = cursor.offset();
    tensor.shape[i] = cursor.u64();
    if (tensor.shape[i] == 0) {
      cursor.fail("bad-dims", dim_at, format_text("dims[{}] is 0; expects 1 or more", i));
    }
  }
}

const TensorType& read_type(Cursor& cursor) {
  const std::uint64_t at = cursor.offset();
  const std::uint32_t id = cursor.u32();
  if (const TensorType* type = find_tensor_type(id)) return *type;
  const std::string_view name = tensor_type_name(id);
  const std::string what = name.empty()
                               ? format_text("tensor type {} is unknown", id)
                               : format_text("tensor type {} ({}) is not supported", id, name);
  cursor.fail("unknown-type", at, what + "; supported are " + supported_types());
}

// Bytes of the data; no product passes the size of the file, so that none overflows.
std::uint64_t data_bytes(const Cursor& cursor, const Tensor& tensor, std::uint64_t file_bytes) {
  const TensorType& type = *tensor.type;
  if (tensor.shape[0] % type.block_values != 0) {
    cursor.fail("bad-dims", tensor.info_offset,
                format_text("dims[0] is {}; {} stores blocks of {} values", tensor.shape[0],
                            type.name, type.block_values));
  }
  std::uint64_t bytes = type.block_bytes;
  const std::array<std::uint64_t, 4> factors = {tensor.shape[0] / type.block_values,
                                                tensor.shape[1], tensor.shape[2], tensor.shape[3]};
  for (const std::uint64_t factor : factors) {
    if (bytes > file_bytes / factor) {
      cursor.fail("out-of-file", tensor.info_offset,
                  format_text("its dims need more than the {} bytes of the file", file_bytes));
    }
    bytes *= factor;
  }
  return bytes;
}

}  // namespace

Tensor read_tensor_info(Cursor& cursor, std::uint64_t file_bytes) {
  Tensor tensor;
  tensor.info_offset = cursor.offset();
  tensor.name = cursor.string();
  if (tensor.name.empty()) {
    cursor.fail("bad-name", tensor.info_offset, "the name of the tensor is empty");
  }
  cursor.subject.name = tensor.name;
  read_dims(cursor, tensor);
  tensor.type = &read_type(cursor);
  tensor.bytes = data_bytes(cursor, tensor, file_bytes);
  tensor.values = tensor.bytes / tensor.type->block_bytes * tensor.type->block_values;
  tensor.offset = cursor.u64();
  return tensor;
}

void place_tensor(Tensor& tensor, const DataSection& section) {
  if (tensor.offset % section.alignment != 0) {
    fail(section.file, "misaligned", subject_of(tensor), tensor.info_offset,
         format_text("its data is at offset {}, not a multiple of the alignment {}", tensor.offset,
                     section.alignment));
  }
  const std::uint64_t size = section.bytes.size();
  const std::uint64_t section_bytes = section.offset > size ? 0 : size - section.offset;
  if (tensor.offset > section_bytes || tensor.bytes > section_bytes - tensor.offset) {
    fail(section.file, "out-of-file", subject_of(tensor), tensor.info_offset,
         format_text("its {} bytes at offset {} end after the {} bytes of the data section",
                     tensor.bytes, tensor.offset, section_bytes));
  }
  tensor.data = section.bytes.subspan(static_cast<std::size_t>(section.offset + tensor.offset),
                                      static_cast<std::size_t>(tensor.bytes));
}

void check_overlap(std::span<const Tensor> tensors, std::string_view file) {
  std::vector<std::size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return tensors[i].offset; });
  for (std::size_t i = 1; i < order.size(); ++i) {
    const Tensor& first = tensors[order[i - 1]];
    const Tensor& second = tensors[order[i]];
    if (second.offset - first.offset >= first.bytes) continue;
    fail(file, "overlap", subject_of(second), second.info_offset,
         format_text("its data at offset {} begins within '{}', which has {} bytes at offset {}",
                     second.offset, printable(first.name), first.bytes, first.offset));
  }
}

}  // namespace ptxgen::inline v0::gguf
