// tests/optimize/token_program.cpp - random token programs, and which pairs of them conflict
#include "token_program.hpp"

#include <algorithm>
#include <bit>
#include <optional>

namespace ptxgen::test {

namespace {

using Kind = BlockOperation::Kind;
using Where = BlockOperation::Where;

bool writes(const BlockOperation& operation) { return operation.kind != Kind::Load; }

unsigned below(std::mt19937_64& random, unsigned bound) {
  return static_cast<unsigned>(random() % bound);
}

BlockOperation random_operation(std::mt19937_64& random, unsigned warps) {
  BlockOperation out;
  out.array = below(random, 3);
  const unsigned kind = below(random, 10);
  out.kind = kind < 5 ? Kind::Load : kind < 9 ? Kind::Store : Kind::Add;
  constexpr Where kWheres[] = {Where::Own, Where::Xor,    Where::Rotate,   Where::Reverse,
                               Where::One, Where::OfWarp, Where::Broadcast};
  // Threads that store one element race with each other.
  out.where = kWheres[below(random, out.kind == Kind::Store ? 6 : 7)];
  if (out.kind == Kind::Add && (out.where == Where::One || out.where == Where::OfWarp))
    out.where = Where::Rotate;
  out.warp = below(random, warps);
  const unsigned threads = 32 * warps;
  switch (out.where) {
    case Where::Xor:
      out.value = 1u << below(random, 5);
      break;
    case Where::Rotate:
      out.value = 1 + below(random, warps - 1);
      break;
    case Where::One:
    case Where::Broadcast:
      out.value = below(random, threads);
      break;
    case Where::OfWarp:
      out.value = below(random, warps);
      break;
    default:
      break;
  }
  if (out.kind == Kind::Add) out.order = TokenOrder::Relaxed;
  if (out.where == Where::One && below(random, 3) == 0)
    out.order = out.kind == Kind::Load ? TokenOrder::Acquire : TokenOrder::Release;
  return out;
}

/// Takes the tokens of all operations before it that it conflicts with, or of later ones that come
/// after these; now and then of one more.
void add_edges(BlockProgram& program, unsigned number, std::mt19937_64& random) {
  std::vector<BlockOperation>& all = program.operations;
  std::vector<bool> ordered(number, false);
  for (unsigned i = number; i-- > 0;) {
    const bool both_atomic = all[i].kind == Kind::Add && all[number].kind == Kind::Add;
    const bool needed = conflict(program, all[i], all[number]) && !both_atomic;
    if (needed && !ordered[i]) all[number].after.push_back(i);
    if (!needed && !ordered[i] && below(random, 12) == 0) all[number].after.push_back(i);
    if (ordered[i] || std::find(all[number].after.begin(), all[number].after.end(), i) !=
                          all[number].after.end()) {
      for (const unsigned earlier : all[i].after) ordered[earlier] = true;
    }
  }
}

}  // namespace

unsigned BlockProgram::barriers() const {
  const auto taking = std::count_if(operations.begin(), operations.end(),
                                    [](const BlockOperation& o) { return !o.after.empty(); });
  return static_cast<unsigned>(taking) + (has_loop() ? 1 : 0);
}

int element_of(const BlockProgram& program, const BlockOperation& operation, unsigned thread) {
  const unsigned value = operation.value;
  switch (operation.where) {
    case Where::Own:
      return static_cast<int>(thread);
    case Where::Xor:
      return static_cast<int>(thread ^ value);
    case Where::Rotate:
      return static_cast<int>((thread + 32 * value) % program.threads());
    case Where::Reverse:
      return static_cast<int>(program.threads() - 1 - thread);
    case Where::One:
      return thread == 0 ? static_cast<int>(value) : -1;
    case Where::Broadcast:
      return static_cast<int>(value);
    case Where::OfWarp:
      return thread / 32 == operation.warp ? static_cast<int>(32 * value + thread % 32) : -1;
  }
  return -1;
}

bool conflict(const BlockProgram& program, const BlockOperation& first,
              const BlockOperation& second) {
  const bool orders = first.order == TokenOrder::Acquire || second.order == TokenOrder::Release;
  const bool overlaps = first.array == second.array && (writes(first) || writes(second));
  if (!orders && !overlaps) return false;
  for (unsigned t = 0; t < program.threads(); ++t) {
    const int a = element_of(program, first, t);
    if (a < 0) continue;
    for (unsigned u = 0; u < program.threads(); ++u) {
      const int b = element_of(program, second, u);
      if (t != u && b >= 0 && (orders || a == b)) return true;
    }
  }
  return false;
}

BlockProgram random_block_program(std::mt19937_64& random, bool loops, unsigned max_operations) {
  BlockProgram program;
  program.warps = 2 + below(random, 7);
  const unsigned count = 3 + below(random, max_operations - 2);
  // Shared memory is written before it is read.
  for (unsigned array = 0; array < 2; ++array) {
    BlockOperation store;
    store.kind = Kind::Store;
    store.array = array;
    program.operations.push_back(store);
  }
  for (unsigned i = 0; i < count; ++i)
    program.operations.push_back(random_operation(random, program.warps));
  if (loops) {
    program.loop_begin = 2 + below(random, count - 1);
    program.loop_end = program.loop_begin + 1 + below(random, count + 2 - program.loop_begin);
    program.loop_end = std::min(program.loop_end, count + 2);
  }
  for (unsigned array = 0; array < 2; ++array) {
    BlockOperation load;
    load.array = array;
    program.operations.push_back(load);
  }
  for (unsigned i = 0; i < program.operations.size(); ++i) add_edges(program, i, random);
  return program;
}

// Executions ----------------------------------------------------------------------------------

std::vector<int> steps_of(const BlockProgram& program) {
  std::vector<int> barrier_of(program.operations.size(), -1);  // before each operation
  int next = 0, at_end = -1;
  for (unsigned i = 0; i < program.operations.size(); ++i) {
    if (program.has_loop() && i == program.loop_end) at_end = next++;
    if (!program.operations[i].after.empty()) barrier_of[i] = next++;
  }
  std::vector<int> steps;
  const auto run = [&](unsigned begin, unsigned end) {
    for (unsigned i = begin; i < end; ++i) {
      if (barrier_of[i] >= 0) steps.push_back(-1 - barrier_of[i]);
      steps.push_back(static_cast<int>(i));
    }
  };
  run(0, program.loop_begin);
  for (unsigned i = 0; program.has_loop() && i < BlockProgram::kIterations; ++i) {
    run(program.loop_begin, program.loop_end);
    steps.push_back(-1 - at_end);
  }
  run(program.loop_end, static_cast<unsigned>(program.operations.size()));
  return steps;
}

bool suffices(const BlockProgram& program, std::uint32_t kept) {
  const std::vector<int> steps = steps_of(program);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (steps[i] < 0) continue;
    bool naive = false, still = false;
    for (std::size_t j = i + 1; j < steps.size() && !still; ++j) {
      if (steps[j] < 0) {
        naive = true;
        still = (kept >> (-1 - steps[j]) & 1u) != 0;
      } else if (naive && conflict(program, program.operations[static_cast<std::size_t>(steps[i])],
                                   program.operations[static_cast<std::size_t>(steps[j])])) {
        return false;
      }
    }
  }
  return true;
}

unsigned fewest(const BlockProgram& program) {
  unsigned best = program.barriers();
  for (std::uint32_t kept = 0; kept < 1u << program.barriers(); ++kept) {
    const auto size = static_cast<unsigned>(std::popcount(kept));
    if (size < best && suffices(program, kept)) best = size;
  }
  return best;
}

// Kernels -------------------------------------------------------------------------------------

namespace {

class ProgramBuilder {
 public:
  ProgramBuilder(KernelBuilder& k, const BlockProgram& program, const Ptr<u32>& p)
      : k_(k),
        program_(program),
        tokens_(k, TokenThreads::block()),
        tid_(k.tid_x()),
        arrays_{k.shared<u32>(program.threads()).base(), k.shared<u32>(program.threads()).base()},
        global_(p),
        sum_(k.var<u32>(k.constant<u32>(1u))) {}

  void run() {
    const auto count = static_cast<unsigned>(program_.operations.size());
    range(0, program_.loop_begin);
    if (program_.has_loop()) {
      k_.for_(0u, BlockProgram::kIterations, 1u, [&](const auto&) {
        range(program_.loop_begin, program_.loop_end);
        k_.bar_sync();
      });
    }
    range(program_.loop_end, count);
    k_.st(global_ + (tid_ + program_.threads()), sum_);
  }

 private:
  void range(unsigned begin, unsigned end) {
    for (unsigned i = begin; i < end; ++i) {
      const BlockOperation& operation = program_.operations[i];
      if (operation.array < 2) {
        emit(i, operation, arrays_[operation.array]);
      } else {
        emit(i, operation, global_);
      }
    }
  }

  Value<u32> element(const BlockOperation& operation) {
    const unsigned threads = program_.threads();
    switch (operation.where) {
      case Where::Own:
        return tid_ + 0u;
      case Where::Xor:
        return tid_ ^ operation.value;
      case Where::Rotate:
        return (tid_ + 32 * operation.value) % threads;
      case Where::Reverse:
        return k_.constant<u32>(threads - 1) - tid_;
      case Where::OfWarp:
        return (tid_ & 31u) + 32 * operation.value;
      default:
        return k_.constant<u32>(operation.value);
    }
  }

  template <class S>
  void emit(unsigned number, const BlockOperation& operation, const Ptr<u32, S>& base) {
    std::optional<Token> after;
    for (const unsigned earlier : operation.after)
      after.emplace(after ? tokens_.join_tokens({*after, tokens_of_[earlier]})
                          : tokens_of_[earlier]);
    TokenUse use;
    use.order = operation.order;
    if (use.order == TokenOrder::Relaxed) use.scope = TokenScope::Block;
    if (use.order == TokenOrder::Acquire || use.order == TokenOrder::Release)
      use.scope = TokenScope::Device;
    use.after = after ? &*after : nullptr;
    const Ptr<u32, S> p = base + element(operation);
    const bool masked = operation.where == Where::One || operation.where == Where::OfWarp;
    const Pred mask =
        operation.where == Where::OfWarp ? (tid_ >> 5u) == operation.warp : tid_ == 0u;
    if (operation.kind == Kind::Load) {
      const auto loaded = masked ? tokens_.load_ptr(p, mask, 7u, use) : tokens_.load_ptr(p, use);
      sum_ = sum_ * 5u + loaded.value;
      tokens_of_.push_back(loaded.token);
    } else if (operation.kind == Kind::Add) {
      tokens_of_.push_back(tokens_.atomic_rmw(TokenRmw::Add, p, tid_ + number, use).token);
    } else {
      const Value<u32> value = sum_ + (tid_ * 3u + 100 * number);
      tokens_of_.push_back(masked ? tokens_.store_ptr(p, value, mask, use)
                                  : tokens_.store_ptr(p, value, use));
    }
  }

  KernelBuilder& k_;
  const BlockProgram& program_;
  TokenProgram tokens_;
  Value<u32> tid_;
  std::array<Ptr<u32, Shared>, 2> arrays_;
  Ptr<u32> global_;
  Var<u32> sum_;
  std::vector<Token> tokens_of_;
};

}  // namespace

BuiltKernel build(const BlockProgram& program) {
  return build_kernel("k", "sm_90", params(param<Ptr<u32>>("p")),
                      [&](KernelBuilder& k, Ptr<u32> p) {
                        k.required_threads(program.threads());
                        ProgramBuilder(k, program, p).run();
                      });
}

std::string to_text(const BlockProgram& program) {
  constexpr const char* kKinds[] = {"load", "store", "add"};
  constexpr const char* kWheres[] = {"own", "xor",       "rotate", "reverse",
                                     "one", "broadcast", "of warp"};
  std::string text = std::to_string(program.warps) + " warps\n";
  for (unsigned i = 0; i < program.operations.size(); ++i) {
    const BlockOperation& o = program.operations[i];
    if (program.has_loop() && i == program.loop_begin) text += "loop\n";
    if (program.has_loop() && i == program.loop_end) text += "end\n";
    text += std::to_string(i) + ": " + kKinds[static_cast<int>(o.kind)] + " array " +
            std::to_string(o.array) + " " + kWheres[static_cast<int>(o.where)] + " " +
            std::to_string(o.value) + ", warp " + std::to_string(o.warp) + ", " +
            std::string(tile::to_string(o.order)) + ", after";
    for (const unsigned earlier : o.after) text += " " + std::to_string(earlier);
    text += "\n";
  }
  return text;
}

std::size_t syncs(const ptx::Module& module) {
  std::size_t count = 0;
  for (const ptx::Function& function : module.functions) {
    for (const ptx::Instruction& s : function.body)
      count += s.is(ptx::Op::bar_sync) || s.is(ptx::Op::barrier_sync) ? 1 : 0;
  }
  return count;
}

}  // namespace ptxgen::test
