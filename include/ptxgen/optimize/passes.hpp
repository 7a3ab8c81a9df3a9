// ptxgen/optimize/passes.hpp - the passes, each a function over one function
#pragma once

#include "ptxgen/optimize/pass.hpp"

namespace ptxgen::inline v0::optimize {

// Each pass takes and produces a function that the verifier accepts. Results are bit-identical
// (fma_fusion: the pairs it reports are rounded once). No pass but `tokens` adds or removes a
// barrier on a path, and none moves an access across a memory order or fence. A second run changes
// nothing. Time is linear in the function (tokens: and in pairs of accesses around barriers).

/// mul and add, sub or neg to fma, for f16, f16x2, bf16, bf16x2, f32 and f64.
void fma_fusion(ptx::Function& function, PassContext& context);
/// Integer mul and add to mad.
void mad_fusion(ptx::Function& function, PassContext& context);
/// A loop that compares its induction variable with an invariant becomes two.
void loop_split(ptx::Function& function, PassContext& context);
/// Instructions whose operands are all constants become moves; algebraic identities.
void fold_constants(ptx::Function& function, PassContext& context);
/// Replaces reads of a copy by reads of its source.
void copy_propagation(ptx::Function& function, PassContext& context);
/// Removes unreachable code and instructions without effects whose results are not read.
void dead_code(ptx::Function& function, PassContext& context);
/// Removes constant guards and branches, branches to the next statement, and unused labels.
void branch_simplify(ptx::Function& function, PassContext& context);
/// Removes each `bar.sync` of an entry that all threads of the block pass if every two statements
/// that conflict, execute in two threads and were ordered by it are ordered by the barriers that
/// stay. As few stay as possible without branches and loops around them; else none of those that
/// stay can go. Two accesses conflict if one writes and they may overlap; an acquire conflicts with
/// what follows, a release with what precedes, and a call, a fence, a volatile access, an
/// asynchronous copy, a clock or a barrier of some threads with everything. Addresses derived from
/// a variable are taken to be in it. Not part of `default`.
void tokens(ptx::Function& function, PassContext& context);

}  // namespace ptxgen::inline v0::optimize
