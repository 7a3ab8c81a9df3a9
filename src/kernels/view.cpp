// src/kernels/view.cpp - views of host and device memory
#include "ptxgen/kernels/view.hpp"

#include "ptxgen/support/error.hpp"
#include "support/count.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::detail {

void check_view(const TensorLayout& layout, std::uint64_t element_bytes, std::uint64_t memory_bytes,
                bool writes) {
  const std::uint64_t needs = layout.bytes(element_bytes);
  if (needs > memory_bytes) {
    throw Error(Stage::Build, "out-of-bounds",
                format_text("view {} of elements of {} ends at byte {}, the memory has {}; rule: a "
                            "view is within its memory; cure: make sizes, strides or offset "
                            "smaller",
                            layout.text(), count_text(element_bytes, "byte"), needs, memory_bytes));
  }
  if (writes && layout.read_only()) {
    throw Error(Stage::Build, "view",
                format_text("view {} of elements that may be written; rule: a broadcast view is "
                            "read-only; cure: make it a view of const elements",
                            layout.text()));
  }
}

void check_contiguous(const TensorLayout& layout) {
  if (layout.is_contiguous()) return;
  throw Error(Stage::Build, "view",
              format_text("view {} as contiguous memory; rule: this operand has no strides; cure: "
                          "copy the view into contiguous memory first",
                          layout.text()));
}

}  // namespace ptxgen::inline v0::detail
