// src/ptx/earlier_body.hpp - unchanged statements of a function
#pragma once

#include "ptxgen/ptx/ir.hpp"

namespace ptxgen::inline v0::ptx {

/// A function as it was earlier, when its statements were found right. The verdict on a statement
/// rests on the statement and its operands, on the declarations that these lead to, and on target
/// and version: where all that is as it was, so is the verdict. Whether a label that it names
/// is placed is a matter of the whole function, and not known from here.
class EarlierBody {
 public:
  EarlierBody() = default;
  /// `module` and `before` are the two states of one module, `function` its place there.
  EarlierBody(const Module& module, const Module& before, std::size_t function);

  /// Whether the statement was there. Asked of statements in their order: what is passed over was
  /// erased, and after one that was rewritten none may be found.
  [[nodiscard]] bool has(const Instruction& statement) noexcept;

 private:
  const Function* earlier_ = nullptr;
  std::size_t next_ = 0;
};

}  // namespace ptxgen::inline v0::ptx
