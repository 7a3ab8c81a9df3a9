// src/kernels/parts/element.hpp - element types as types of the builder
#pragma once

#include <string>
#include <string_view>

#include "ptxgen/builder/types.hpp"
#include "ptxgen/kernels/element_type.hpp"
#include "ptxgen/support/error.hpp"

namespace ptxgen::inline v0 {

[[noreturn]] inline void refuse_type(std::string_view kernel, ElementType type,
                                     std::string_view allowed) {
  Error error(Stage::Build, "bad-parameter",
              "type is " + std::string(to_string(type)) + "; it may be " + std::string(allowed));
  error.kernel = kernel;
  throw error.refresh();
}

/// `call(f32{})`, `call(f16{})` or `call(bf16{})`. Throws `Error` (Stage::Build, "bad-parameter")
/// for other types.
template <class Call>
auto with_float_type(std::string_view kernel, ElementType type, const Call& call) {
  if (type == ElementType::f32) return call(f32{});
  if (type == ElementType::f16) return call(f16{});
  if (type == ElementType::bf16) return call(bf16{});
  refuse_type(kernel, type, "f32, f16 or bf16");
}

}  // namespace ptxgen::inline v0
