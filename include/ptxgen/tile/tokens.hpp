// ptxgen/tile/tokens.hpp - rules of token-ordered memory operations
#pragma once

#include "ptxgen/support/language.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ptxgen/ptx/finding.hpp"

namespace ptxgen::inline v0::tile {

/// What an operation promises to other threads, and to which.
enum class TokenOrder : std::uint8_t { Weak, Relaxed, Acquire, Release, AcqRel };
enum class TokenScope : std::uint8_t { None, Block, Cluster, Device, System };
/// "weak", ..., "acq_rel"; "", "block", ..., "system"
[[nodiscard]] std::string_view to_string(TokenOrder order) noexcept;
[[nodiscard]] std::string_view to_string(TokenScope scope) noexcept;

/// The kinds of operations, by which orders they may have.
enum class TokenAccess : std::uint8_t { Load, Store, Rmw, Cas, Reduce };
[[nodiscard]] std::string_view to_string(TokenAccess access) noexcept;

/// Why the operation may not have this order and scope, with rule and cure, or an empty text: weak
/// has no scope and every other order has one; loads are weak, relaxed or acquire, stores weak,
/// relaxed or release; rmw and cas are never weak; reductions are relaxed.
[[nodiscard]] std::string order_mistake(TokenAccess access, TokenOrder order, TokenScope scope);

/// Checks a program of token-ordered operations, one in a line; `#` starts a comment:
///
///     %p : ptr<f32>[64]          a value by its type: token, i1[..], f32[..], ptr<f32>[..]
///     %t0 = make_token
///     %v, %t1 = load %p relaxed device after %t0 mask %m padding %z
///     %t2 = store %p, %v release device after %t1
///     %o, %t3 = rmw add %p, %v acq_rel device
///     %c, %t4 = cas %p, %a, %b relaxed block
///     %t5 = reduce add %p, %v relaxed device
///     %t6 = join_tokens %t2, %t3
///
/// `after`, `mask` and `padding` may be left out. Findings (rule `tokens`, error) name the line: a
/// token of another type, joins of fewer than two tokens, shapes and types that differ, orders and
/// scopes that an operation does not have, and cycles, each with its path.
[[nodiscard]] std::vector<Finding> verify_tokens(std::string_view program);

}  // namespace ptxgen::inline v0::tile
