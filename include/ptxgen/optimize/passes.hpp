// ptxgen/optimize/passes.hpp - the passes, each a function over one function
#pragma once

#include "ptxgen/optimize/pass.hpp"

namespace ptxgen::inline v0::optimize {

// Each takes a function that the verifier accepts and leaves one that it accepts, with the same
// results bit for bit (fma_fusion: with the pairs it reports rounded once). None adds a barrier to
// a path or takes one away, none moves or removes anything across what a memory order or a fence
// orders, and a second run changes nothing. Work is linear in the function.

/// mul and add, sub or neg to fma, for f16, f16x2, bf16, bf16x2, f32 and f64.
void fma_fusion(ptx::Function& function, PassContext& context);
/// Integer mul and add to mad.
void mad_fusion(ptx::Function& function, PassContext& context);
/// A loop that compares its induction variable with an invariant becomes two.
void loop_split(ptx::Function& function, PassContext& context);
/// Instructions whose operands are all constants become moves; algebraic identities.
void fold_constants(ptx::Function& function, PassContext& context);
/// Reads of a copy become reads of what was copied.
void copy_propagation(ptx::Function& function, PassContext& context);
/// Removes what has no effect and whose results nobody reads, and what control never comes to.
void dead_code(ptx::Function& function, PassContext& context);
/// Guards and branches that are decided, branches to the next statement, labels nobody names.
void branch_simplify(ptx::Function& function, PassContext& context);

}  // namespace ptxgen::inline v0::optimize
