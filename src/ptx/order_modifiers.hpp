// src/ptx/order_modifiers.hpp - illegal combinations of memory orders and scopes
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace ptxgen::inline v0::ptx {

/// What is wrong with the orders and scopes of an opcode; empty if it is nothing of that kind.
struct OrderFault {
  std::string message;
  std::string rule;
  std::string cure;
  [[nodiscard]] bool found() const noexcept { return !message.empty(); }
};

/// Looks at an opcode that no row of the op table takes, for the orders and scopes in it. What each
/// mnemonic admits is read from its rows. Mnemonics whose opcodes do not begin with an order
/// (mbarrier, multimem, ...) are not looked at.
[[nodiscard]] OrderFault order_fault(std::string_view mnemonic,
                                     std::span<const std::string_view> modifiers);

/// The same for an opcode as text: "ld.release.gpu.u32".
[[nodiscard]] OrderFault order_fault(std::string_view opcode);

}  // namespace ptxgen::inline v0::ptx
