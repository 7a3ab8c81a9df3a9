// src/qa/lines/claims.cpp - claims that tests decide, and all in order
#include <algorithm>
#include <vector>

#include "qa/lines/claim_row.hpp"
#include "support/numbers.hpp"

namespace ptxgen::qa {

namespace claims {
namespace {

constexpr Line kLines[] = {
    // Memory hierarchy
    tested("31", "strided views are right",
           "view_random_test.cpp: 1,000,000 random shapes, strides, slices, permutations and "
           "reshapes against lists of positions; 10,000,000 in a full run",
           "case falsification 31"),
    tested("32", "tiles do not overlap and cover the tensor",
           "view_random_test.cpp: every element in exactly one tile, in three orders of visit, "
           "with any dim map",
           "case falsification 32"),
    tested("33", "strides of all layouts",
           "view_random_test.cpp: row-major, column-major and tiled, ranks 1 to 4",
           "case falsification 33"),
    on_gpu("34", "a tile of a third of the cache has 90 % L1 hits",
           "a hardware counter; tiles here are staged in shared memory"),
    tested("35", "coalesced access takes a fraction of the sectors",
           "kernels_test.cpp: an eighth, exactly, on the emulator; the time needs a GPU",
           "case falsification 35"),
    tested("36", "views cost less than 1 %",
           "kernels_test.cpp: four kernels beside hand-written twins, instructions within 1 %, the "
           "same sectors, wavefronts and barriers",
           "case falsification 36"),
    tested("37", "ranks 1 to 4", "view_random_test.cpp, with row 33; views have up to rank 5",
           "case falsification 37"),
    tested("38", "alignment is derived",
           "access_test.cpp: widths against all addresses that the facts allow; "
           "builder_tile_test.cpp: what a misaligned base, pitch or size does to the vectors of a "
           "kernel",
           "case falsification 38"),
    tested("39", "strided loads have the right addresses",
           "builder_tile_test.cpp: every tile of strided and transposed views in every "
           "permutation, on the emulator",
           "case falsification 39"),
    tested("40", "views are type-safe",
           "tests/compile_fail/view_*.cpp, tile_*.cpp, typed_launch_view.cpp",
           "case compile_fail/"),
    tested("41", "a slice keeps the strides", "view_random_test.cpp", "case falsification 41"),
    tested("42", "a transposition swaps, twice is nothing", "view_test.cpp",
           "case falsification 42"),
    tested("43", "offsets of batches",
           "kernels_test.cpp: a batched product with gaps against a loop", "case falsification 43"),
    tested("44", "views copy nothing", "host_view_test.cpp: no allocation",
           "case falsification 44"),
    tested("45", "bounds are checked", "view_test.cpp, host_view_test.cpp: an error and no access",
           "case falsification 45"),
    on_gpu("46", "tiling has fewer cache misses", "a hardware counter; the emulator has no cache"),
    tested("47", "contiguity is detected",
           "view_test.cpp: dims of size 1, no elements, dynamic sizes", "case falsification 47"),
    tested("48", "a view written and read back is the same", "view_random_test.cpp",
           "case falsification 48"),
    tested("49", "transfers with views",
           "view_copy_test.cpp: strided copies to the device and back, synchronous and queued, "
           "against element-wise ones; on the emulated device",
           "case falsification 49"),
    tested("50", "a view's description is below 1 % of 1 MB", "view_test.cpp",
           "case falsification 50"),
    // Loop splitting; 51, 54, 57, 64 and 65 are in claims_loops.cpp
    tested("52", "the heuristic predicts the gain", "executed instructions of a GEMV: 15 % fewer",
           "case a GEMV whose inner loop guards every step runs 15 % fewer instructions"),
    tested("53", "the split point is right", "every loop of a small type, brute force",
           "case every loop of a small type at both ends of its range and in the middle"),
    tested("55", "loops that cannot be split are unchanged", "fixtures, code identical",
           "case equality is refused;case a condition that depends on the thread is refused;case a "
           "loop with two entries is refused"),
    tested("56", "nested loops are split", "both levels",
           "case conditions of an outer and an inner loop, the inner one first"),
    on_gpu("58", "splitting lowers the misses of the instruction cache",
           "a hardware counter; the code grows"),
    tested("59", "empty regions are removed", "bounds at the start and the end",
           "case a condition that never changes takes no second loop"),
    tested("60", "steps above 1", "brute force",
           "case a step other than 1 and bounds near which the variable wraps, and others"),
    tested("61", "unsigned bounds that wrap", "bounds at the ends of the type",
           "case bounds anywhere: the compared value far away from the loop, at the ends of the "
           "type"),
    open_claim("62", "loops can be fused after a split",
               "not decided: no pass fuses loops, and none reports adjacent pairs"),
    tested("63", "split loops are unrolled independently", "hints of condition, loop and kernel",
           "case hints of the condition, the loop, the kernel, the options: the first one counts"),
    // Tokens
    tested("66", "tokens need fewer barriers",
           "tokens_test.cpp: fixtures, with the reason for each barrier; token_programs_test.cpp "
           "prints the share removed of random programs; barrier_litmus_test.cpp: without one more "
           "barrier the memory model allows what the tokens forbid",
           "case falsification 66"),
    tested("67", "there are no data races",
           "token_programs_test.cpp: random programs before and after the pass, on the emulator "
           "with its race detector; schedules_test.cpp: the detector reports a race exactly where "
           "the memory model has one. Thread sanitizer is about the host's code, and part of "
           "scripts/test --ci",
           "case falsification 67"),
    tested("68", "tokens match the memory model",
           "memory_model_test.cpp: the axioms of PTX give 55 published litmus tests their "
           "verdicts; token_litmus_test.cpp: MP, SB, LB, IRIW, CoRR and 2+2W with every pair of "
           "orders and scopes, in a block, between blocks and in a cluster: the PTX allows no "
           "outcome that the tokens forbid; schedules_test.cpp: nor do schedules of the emulator, "
           "whose races are those of the model",
           "case falsification 68"),
    on_gpu("69", "relaxed operations are the fastest", "times"),
    tested_false(
        "70", "tokens enable fusion",
        "tokens_test.cpp: false as stated. Fusion follows registers: a product and a sum are "
        "fused with the barrier of a token between them, and without it",
        "case falsification 70"),
    tested(
        "71", "barriers are removed soundly",
        "token_programs_test.cpp: small programs in every interleaving of their warps, before and "
        "after; without one more barrier some have several results; barrier_litmus_test.cpp: the "
        "memory model allows random programs the same outcomes before and after",
        "case falsification 71"),
    tested("72", "loads of shared memory are ordered",
           "token_programs_test.cpp: an exchange between warps in 20 schedules",
           "case falsification 72"),
    tested("73", "stores to global memory are ordered",
           "a store and the load of what it wrote, on the emulator", "case falsification 73"),
    tested(
        "74", "tokens order warps",
        "token_programs_test.cpp, with row 67: 2 to 8 warps, schedules sampled by seed, one result",
        "case falsification 74"),
    tested("75", "tokens cost nothing", "the PTX with tokens is the PTX without",
           "case falsification 75"),
    tested("76", "tokens order atomics", "a chain of atomics on the emulator",
           "case falsification 76"),
    tested("77", "scopes are respected",
           "token_programs_test.cpp: a message between two blocks with scope block is reported "
           "(scope-too-narrow), with device or system it is not; token_litmus_test.cpp: a "
           "forbidden outcome is allowed with one order or one scope less; schedules_test.cpp: the "
           "texts of the reports, cluster included",
           "case falsification 77"),
    tested("78", "dead tokens are removed",
           "token_programs_test.cpp: what is left is the PTX without tokens",
           "case falsification 78"),
    tested("79", "cycles are rejected", "in the textual form, with the path of the cycle",
           "case falsification 79"),
    tested("80", "tokens keep their source location", "the C++ line of each operation",
           "case falsification 80"),
    // Agreement of backends
    tested("81", "backends agree within 1e-5",
           "agreement_test.cpp: every kernel in every case on every backend of the host, beside "
           "the emulator with the same inputs. Kernels with an exact bound, and sums of the same "
           "order, agree bit for bit; all others within their bounds, and f32 outputs within 1e-5 "
           "of the largest value. On a GPU ptxgen verify all --cases compares with the same "
           "references; not run here",
           "case falsification 81"),
    tested("82", "the choice of a backend is deterministic",
           "falsification_test.cpp: repeated openings and launches", "case falsification 82"),
    tested("83", "remainders of a vector are right",
           "vectors_test.cpp: every loop with 0 to 97 elements at any alignment, with guards; "
           "agreement_test.cpp: kernels with 1 to 67 elements",
           "case falsification 83"),
    on_gpu("84", "a model of transfers is within 20 %", "transfers between host and GPU"),
    tested("85", "the fallback is complete",
           "falsification_test.cpp: each instruction set switched off in turn, then all of them; "
           "every kernel is right",
           "case falsification 85"),
    tested("86", "processor features are detected",
           "falsification_test.cpp: Highway's answer against /proc/cpuinfo",
           "case falsification 86"),
    tested("87", "switching backends has no side effects",
           "falsification_test.cpp: a sequence of launches, each on another backend, in the memory "
           "of one context",
           "case falsification 87"),
    tested(
        "88", "empty inputs are legal",
        "falsification_test.cpp: a size of 0 is refused with the emulator's text before anything "
        "is queued; a GEMV without terms gives 0; loops over no elements change nothing",
        "case falsification 88"),
    tested("89", "single elements are legal",
           "falsification_test.cpp: every kernel with its smallest case on every backend and the "
           "emulator",
           "case falsification 89"),
    inapplicable("90", "AVX-512 is faster than AVX2, SSE and scalar code",
                 "a property of processors, not of PTX; bench_host prints the figures"),
    // Numerics; 91 to 96 and 98 are in claims_numerics.cpp
    tested("97", "the order of sums is documented", "the generated page of accuracy",
           "case docs/accuracy_page_is_up_to_date"),
    tested("99", "ill-conditioned sums", "cancellation within the bound of fp64",
           "case D7: mixed signs with cancellation keep the sign where it is certain"),
    inapplicable(
        "100", "x86 and ARM agree",
        "no ARM host is part of the tests; the emulator's results are exact by definition"),
    // Barriers
    tested("101", "an exit before a barrier in a loop is reported",
           "gemm_mma and gemm_wmma with an exit that some threads branch around: "
           "exited-before-barrier, and the emulator reports it; where all threads exit, nothing",
           "case falsification 101"),
    tested("102", "an exit of some threads is reported, of whole blocks it is not",
           "gemm_wmma, in front of either barrier; an exit of whole blocks",
           "case falsification 102"),
    tested("103", "an exit after the loop is not reported", "after the last barrier",
           "case falsification 103"),
    tested("104", "the k loop of a GEMM gets the right verdict",
           "barrier_safety of gemm_tiled and gemm_mma: nothing; with an exit in front of the "
           "barrier: exited-before-barrier",
           "case falsification 104"),
    tested("105", "the loop over keys of attention gets the right verdict",
           "barrier_safety: nothing, with lengths from memory too; with an exit in front of the "
           "barrier: exited-before-barrier",
           "case falsification 105"),
    tested(
        "106", "barriers are told apart and counted",
        "bar and barrier, sync, red and arrive, bar.warp.sync, and their names in comments, labels "
        "and registers: the gate's use of each statement, and the emulator's count",
        "case falsification 106"),
    tested("107", "17 rows in tiles of 16",
           "gemm_tiled and gemm_mma against fp64, guard bytes around every operand",
           "case falsification 107"),
    tested("108", "33 columns in tiles of 32",
           "gemm_tiled and gemm_mma against fp64, guard bytes around every operand",
           "case falsification 108"),
    tested("109", "one row",
           "gemm_tiled and gemm_mma against fp64, guard bytes around every operand",
           "case falsification 109"),
    tested("110", "one column",
           "gemm_tiled and gemm_mma against fp64, guard bytes around every operand",
           "case falsification 110"),
    tested("111", "17 queries and keys", "against fp64, causal and not, with all checks",
           "case falsification 111"),
    tested_false(
        "112", "a barrier in a loop is safe",
        "false as stated: gemm_mma with and without a k loop is safe; with an exit in front of "
        "the barrier the gate and the emulator report it",
        "case falsification 112"),
    tested_false("113", "without loops a kernel is safe", "false as stated, likewise",
                 "case falsification 113"),
    tested("114", "the kernels of the specification pass the analysis",
           "barrier_safety of gemm_tiled, gemm_mma, gemm_wmma, flash_attention and "
           "flash_attention_tensor_core: nothing",
           "case falsification 114"),
    tested("115", "early exits, put back, are reported",
           "gemm_mma, gemm_wmma and attention: exited-before-barrier; the emulator: the same, and "
           "reads "
           "of what the threads did not store; lost tails: size-rounded-down, lost-dependence; "
           "missing masks: unmasked-padding, false-dependence",
           "case falsification 115"),
};

unsigned number_of(const Line& line) {
  std::string_view rest = line.id;
  return take_number<unsigned>(rest).value_or(0);
}

}  // namespace
}  // namespace claims

std::span<const Line> recorded_claims() { return claims::kLines; }

std::span<const Line> claim_lines() {
  static const std::vector<Line> kAll = [] {
    std::vector<Line> all;
    for (const auto lines :
         {tile_claims(), fusion_claims(), loop_claims(), recorded_claims(), numeric_claims()}) {
      all.insert(all.end(), lines.begin(), lines.end());
    }
    std::ranges::stable_sort(all, {}, claims::number_of);
    return all;
  }();
  return kAll;
}

}  // namespace ptxgen::qa
