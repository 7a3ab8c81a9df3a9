// tests/litmus/token_litmus.cpp - litmus tests as token programs, by orders and scopes
#include "token_litmus.hpp"

#include <algorithm>
#include <optional>

#include "ptxgen/builder.hpp"

namespace ptxgen::litmus {

namespace {

constexpr std::string_view kOrders[] = {"weak", "relaxed", "acquire", "release", "acq_rel", "sc"};
constexpr std::string_view kScopes[] = {"", "cta", "cluster", "gpu", "sys"};

std::uint32_t warps_of(const Placement& placement) {
  std::uint32_t warps = 0;
  for (const std::uint32_t block : placement.block) {
    warps = std::max(warps, static_cast<std::uint32_t>(std::ranges::count(placement.block, block)));
  }
  return warps;
}

// The number of the thread's warp in the launch.
std::uint32_t warp_of(const Placement& placement, std::size_t thread) {
  const auto begin = placement.block.begin();
  const auto here = begin + static_cast<std::ptrdiff_t>(thread);
  return *here * warps_of(placement) + static_cast<std::uint32_t>(std::count(begin, here, *here));
}

TokenUse token_use(const Use& use, const Token* after) {
  constexpr TokenOrder kTokenOrders[] = {TokenOrder::Weak, TokenOrder::Relaxed, TokenOrder::Acquire,
                                         TokenOrder::Release, TokenOrder::AcqRel};
  constexpr TokenScope kTokenScopes[] = {TokenScope::None, TokenScope::Block, TokenScope::Cluster,
                                         TokenScope::Device, TokenScope::System};
  return {kTokenOrders[static_cast<std::size_t>(use.order)],
          kTokenScopes[static_cast<std::size_t>(use.scope)], after};
}

/// Emits the steps of one thread.
class ThreadBuilder {
 public:
  ThreadBuilder(KernelBuilder& k, TokenProgram& program, const Ptr<u32>& memory, const Steps& steps,
                std::size_t thread, std::uint32_t first_result)
      : k_(k),
        program_(program),
        memory_(memory),
        steps_(steps),
        thread_(thread),
        result_(first_result) {}

  void build() { from(0, nullptr, {}); }

 private:
  void from(std::size_t i, const Token* last, std::optional<ptxgen::Value<u32>> read) {
    if (i == steps_.size()) return;
    const Step& step = steps_[i];
    if (step.guarded && !guarded_) {
      guarded_ = true;
      k_.if_(*read == 1u, [&] { from(i, last, read); });
      return;
    }
    guarded_ = false;
    // The emulator may run another warp at a label.
    k_.label("thread" + std::to_string(thread_) + "_step" + std::to_string(i));
    if (step.kind == Kind::Fence) {
      if (step.use.order == Order::Weak) return from(i + 1, last, read);
      k_.fence(step.use.order == Order::Sc ? ptxgen::Order::sc : ptxgen::Order::acq_rel,
               scope_of(step.use.scope));
      from(i + 1, last, read);
      return;
    }
    const Ptr<u32> at = memory_ + static_cast<int>(step.location);
    const TokenUse use = token_use(step.use, step.linked ? last : nullptr);
    if (step.kind == Kind::Store) {
      const Token token = program_.store_ptr(at, step.value, use);
      from(i + 1, &token, {});
      return;
    }
    const Loaded<u32> loaded = step.kind == Kind::Load
                                   ? program_.load_ptr(at, use)
                                   : program_.atomic_rmw(TokenRmw::Add, at, step.value, use);
    const auto word = static_cast<int>(result_index(result_++));
    (void)program_.store_ptr(memory_ + word, loaded.value, {.after = &loaded.token});
    from(i + 1, &loaded.token, loaded.value);
  }

  static ptxgen::Scope scope_of(Scope scope) {
    constexpr ptxgen::Scope kAll[] = {ptxgen::Scope::none, ptxgen::Scope::cta,
                                      ptxgen::Scope::cluster, ptxgen::Scope::gpu,
                                      ptxgen::Scope::sys};
    return kAll[static_cast<std::size_t>(scope)];
  }

  KernelBuilder& k_;
  TokenProgram& program_;
  const Ptr<u32>& memory_;
  const Steps& steps_;
  std::size_t thread_;
  std::uint32_t result_;
  bool guarded_ = false;
};

std::uint32_t results_of(const Steps& steps) {
  return static_cast<std::uint32_t>(std::ranges::count_if(
      steps, [](const Step& step) { return step.kind == Kind::Load || step.kind == Kind::Add; }));
}

}  // namespace

std::string to_text(const Use& use) {
  std::string text(kOrders[static_cast<std::size_t>(use.order)]);
  if (use.scope != Scope::None)
    text += " " + std::string(kScopes[static_cast<std::size_t>(use.scope)]);
  return text;
}

std::vector<Use> uses_of(Kind kind) {
  std::vector<Order> orders;
  std::vector<Use> uses;
  if (kind == Kind::Load) orders = {Order::Relaxed, Order::Acquire};
  if (kind == Kind::Store) orders = {Order::Relaxed, Order::Release};
  if (kind == Kind::Add) orders = {Order::Relaxed, Order::Acquire, Order::Release, Order::AcqRel};
  if (kind == Kind::Fence) orders = {Order::AcqRel, Order::Sc};
  if (kind == Kind::Load || kind == Kind::Store) uses.push_back({});
  for (const Order order : orders) {
    for (const Scope scope : {Scope::Cta, Scope::Cluster, Scope::Gpu, Scope::Sys}) {
      uses.push_back({order, scope});
    }
  }
  return uses;
}

bool Placement::reaches(Scope scope) const noexcept {
  const bool one_block = std::ranges::count(block, block[0]) == std::ssize(block);
  switch (scope) {
    case Scope::None:
      return false;
    case Scope::Cta:
      return one_block;
    case Scope::Cluster:
      return one_block || cluster > 1;
    default:
      return true;
  }
}

std::vector<Placement> placements(std::size_t threads) {
  std::vector<std::uint32_t> blocks(threads);
  for (std::uint32_t i = 0; i < threads; ++i) blocks[i] = i;
  return {{"one block", std::vector<std::uint32_t>(threads, 0)},
          {"between blocks", blocks},
          {"a cluster", blocks, static_cast<std::uint32_t>(threads)}};
}

Launch launch_of(const Placement& placement) {
  Launch launch;
  launch.blocks = *std::ranges::max_element(placement.block) + 1;
  launch.threads = 32 * warps_of(placement);
  launch.cluster = placement.cluster;
  launch.words = kWords;
  return launch;
}

BuiltKernel build(const TokenTest& test, const Placement& placement) {
  return build_kernel(
      "litmus", "sm_90", params(param<Ptr<u32>>("memory")), [&](KernelBuilder& k, Ptr<u32> memory) {
        TokenProgram program(k);
        const Launch launch = launch_of(placement);
        const ptxgen::Value<u32> me = k.ctaid_x() * launch.threads + k.tid_x();
        std::uint32_t result = 0;
        for (std::size_t t = 0; t < test.threads.size(); ++t) {
          k.if_(me == 32 * warp_of(placement, t),
                [&] { ThreadBuilder(k, program, memory, test.threads[t], t, result).build(); });
          result += results_of(test.threads[t]);
        }
      });
}

Program lowered(const BuiltKernel& kernel, const Placement& placement) {
  return read_program(kernel.module(), kernel.name(), launch_of(placement));
}

namespace {

/// The events of a thread's steps in token order.
class PathBuilder {
 public:
  PathBuilder(const Steps& steps, std::uint32_t first_result)
      : steps_(steps), result_(first_result) {}

  /// The first `count` steps. If more follow, those are guarded, and the guard does not hold.
  Path build(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      if (steps_[i].guarded) guard(true);
      add(steps_[i]);
    }
    if (count < steps_.size()) guard(false);
    path_.order = order_.closure();
    return std::move(path_);
  }

 private:
  void guard(bool holds) {
    control_ |= bit(*read_);
    Value is_one = Value::of_read(*read_);
    is_one.compute = [read = *read_](std::span<const std::uint64_t> all) {
      return std::uint64_t{all[read] == 1};
    };
    path_.conditions.push_back({is_one, holds});
  }

  void add(const Step& step) {
    if (step.kind == Kind::Fence && step.use.order == Order::Weak) return;
    const auto own = static_cast<std::uint32_t>(path_.events.size());
    Event event;
    event.order = step.use.order;
    event.scope = step.use.scope;
    event.location = step.location;
    event.depends = control_;
    event.fence = step.kind == Kind::Fence;
    event.reads = step.kind == Kind::Load || step.kind == Kind::Add;
    event.writes = step.kind == Kind::Store || step.kind == Kind::Add;
    event.atomic = step.kind == Kind::Add;
    event.value = step.value;
    if (event.atomic) {
      event.value = Value::of_read(own);
      event.value.compute = [own, value = step.value](std::span<const std::uint64_t> all) {
        return (all[own] + value) & 0xffffffffu;
      };
    }
    for_each(event.fence ? bit(own) - 1 : fences_, [&](std::uint32_t e) { order_.add(e, own); });
    if (event.fence) fences_ |= bit(own);
    if (!event.fence && step.linked && last_) order_.add(*last_, own);
    path_.events.push_back(event);
    if (event.fence) return;
    last_ = own;
    if (event.reads) keep(own);
  }

  // What is read is stored, after the read.
  void keep(std::uint32_t read) {
    Event kept;
    kept.writes = true;
    kept.location = result_index(result_++);
    kept.value = Value::of_read(read);
    kept.depends = control_;
    order_.add(read, read + 1);
    path_.events.push_back(kept);
    read_ = read;
  }

  const Steps& steps_;
  std::uint32_t result_;
  Path path_;
  Relation order_;
  std::optional<std::uint32_t> last_;  ///< event whose token is taken
  std::optional<std::uint32_t> read_;  ///< the last read
  Events fences_ = 0;
  Events control_ = 0;
};

}  // namespace

Program by_tokens(const TokenTest& test, const Placement& placement) {
  Program program;
  program.initial.assign(kWords, 0);
  std::uint32_t result = 0;
  for (std::size_t t = 0; t < test.threads.size(); ++t) {
    Thread thread;
    const std::uint32_t block = placement.block[t];
    thread.place = {0, block / placement.cluster, block};
    const Steps& steps = test.threads[t];
    thread.paths.push_back(PathBuilder(steps, result).build(steps.size()));
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (steps[i].guarded) thread.paths.push_back(PathBuilder(steps, result).build(i));
    }
    result += results_of(steps);
    program.threads.push_back(std::move(thread));
  }
  return program;
}

namespace {

constexpr Use kRelaxed{Order::Relaxed, Scope::Sys};
constexpr Use kSc{Order::Sc, Scope::Sys};
constexpr std::uint32_t kX = 0;
constexpr std::uint32_t kY = 1;

Step load(std::uint32_t at, Use use = {}) { return {Kind::Load, at, 0, use}; }
Step store(std::uint32_t at, std::uint32_t value, Use use = {}) {
  return {Kind::Store, at, value, use};
}
Step add(std::uint32_t at, std::uint32_t value, Use use) { return {Kind::Add, at, value, use}; }
Step fence(Use use) { return {Kind::Fence, 0, 0, use}; }
Step guarded(Step step) {
  step.guarded = true;
  return step;
}

bool never(Order, Order) { return false; }
bool both_strong(Order a, Order b) { return a != Order::Weak && b != Order::Weak; }
bool both_sc(Order a, Order b) { return a == Order::Sc && b == Order::Sc; }
bool always(Order, Order) { return true; }
bool synchronise(Order release, Order acquire) {
  return (release == Order::Release || release == Order::AcqRel) &&
         (acquire == Order::Acquire || acquire == Order::AcqRel);
}
bool synchronise_back(Order acquire, Order release) { return synchronise(release, acquire); }

}  // namespace

const std::vector<Shape>& shapes() {
  constexpr std::uint32_t r0 = result_index(0);
  constexpr std::uint32_t r1 = result_index(1);
  constexpr std::uint32_t r2 = result_index(2);
  constexpr std::uint32_t r3 = result_index(3);
  static const std::vector<Shape> all = {
      {"MP",
       Kind::Store,
       Kind::Load,
       [](Use a, Use b) {
         return TokenTest{{{store(kX, 1), store(kY, 1, a)}, {load(kY, b), load(kX)}}};
       },
       {{r0, 1}, {r1, 0}},
       synchronise},
      {"MP that reads what was released",
       Kind::Store,
       Kind::Load,
       [](Use a, Use b) {
         return TokenTest{{{store(kX, 1), store(kY, 1, a)}, {load(kY, b), guarded(load(kX))}}};
       },
       {{r0, 1}, {r1, 0}},
       synchronise},
      {"MP of atomics",
       Kind::Add,
       Kind::Add,
       [](Use a, Use b) {
         return TokenTest{{{store(kX, 1), add(kY, 1, a)}, {add(kY, 0, b), load(kX)}}};
       },
       {{r1, 1}, {r2, 0}},
       synchronise},
      {"MP with fences",
       Kind::Fence,
       Kind::Fence,
       [](Use a, Use b) {
         return TokenTest{{{store(kX, 1), fence(a), store(kY, 1, kRelaxed)},
                           {load(kY, kRelaxed), fence(b), load(kX)}}};
       },
       {{r0, 1}, {r1, 0}},
       always},
      {"SB",
       Kind::Store,
       Kind::Load,
       [](Use a, Use b) {
         return TokenTest{{{store(kX, 1, a), load(kY, b)}, {store(kY, 1, a), load(kX, b)}}};
       },
       {{r0, 0}, {r1, 0}},
       never},
      {"SB with fences",
       Kind::Fence,
       Kind::Fence,
       [](Use a, Use b) {
         return TokenTest{{{store(kX, 1), fence(a), load(kY)}, {store(kY, 1), fence(b), load(kX)}}};
       },
       {{r0, 0}, {r1, 0}},
       both_sc},
      {"LB",
       Kind::Load,
       Kind::Store,
       [](Use a, Use b) {
         return TokenTest{{{load(kX, a), store(kY, 1)}, {load(kY), store(kX, 1, b)}}};
       },
       {{r0, 1}, {r1, 1}},
       synchronise_back},
      {"IRIW",
       Kind::Store,
       Kind::Load,
       [](Use a, Use b) {
         return TokenTest{{{store(kX, 1, a)},
                           {store(kY, 1, a)},
                           {load(kX, b), load(kY, b)},
                           {load(kY, b), load(kX, b)}}};
       },
       {{r0, 1}, {r1, 0}, {r2, 1}, {r3, 0}},
       never},
      {"IRIW of strong accesses with fences",
       Kind::Store,
       Kind::Load,
       [](Use a, Use b) {
         return TokenTest{{{store(kX, 1, a)},
                           {store(kY, 1, a)},
                           {load(kX, b), fence(kSc), load(kY)},
                           {load(kY, b), fence(kSc), load(kX)}}};
       },
       {{r0, 1}, {r1, 0}, {r2, 1}, {r3, 0}},
       both_strong},
      {"IRIW with fences",
       Kind::Fence,
       Kind::Fence,
       [](Use a, Use b) {
         return TokenTest{{{store(kX, 1, kRelaxed)},
                           {store(kY, 1, kRelaxed)},
                           {load(kX, kRelaxed), fence(a), load(kY)},
                           {load(kY, kRelaxed), fence(b), load(kX)}}};
       },
       {{r0, 1}, {r1, 0}, {r2, 1}, {r3, 0}},
       both_sc},
      {"CoRR",
       Kind::Store,
       Kind::Load,
       [](Use a, Use b) {
         return TokenTest{{{store(kX, 1, a)}, {load(kX, b), load(kX)}}};
       },
       {{r0, 1}, {r1, 0}},
       both_strong},
      {"2+2W",
       Kind::Store,
       Kind::Store,
       [](Use a, Use b) {
         return TokenTest{{{store(kX, 1, a), store(kY, 2, b)}, {store(kY, 1, a), store(kX, 2, b)}}};
       },
       {{kX, 1}, {kY, 1}},
       never},
      {"2+2W with fences",
       Kind::Fence,
       Kind::Fence,
       [](Use a, Use b) {
         return TokenTest{
             {{store(kX, 1), fence(a), store(kY, 2)}, {store(kY, 1), fence(b), store(kX, 2)}}};
       },
       {{kX, 1}, {kY, 1}},
       both_sc},
  };
  return all;
}

bool has_outcome(const Shape& shape, const Allowed& outcomes) {
  return std::ranges::any_of(outcomes, [&](const auto& each) {
    return std::ranges::all_of(
        shape.outcome, [&](const auto& term) { return each.first[term.first] == term.second; });
  });
}

EmulatedTest::EmulatedTest(const BuiltKernel& kernel, const Placement& placement)
    : device_(emulator::default_gpu(kernel.target())),
      program_(emulator::Program::load(device_, kernel.module())),
      name_(kernel.name()),
      memory_(device_.allocate(4 * kWords, "memory")) {
  const Launch launch = launch_of(placement);
  launch_.kernel = name_;
  launch_.grid = {launch.blocks, 1, 1};
  launch_.block = {launch.threads, 1, 1};
  launch_.cluster = {launch.cluster, 1, 1};
  launch_.parameters = std::as_bytes(std::span(&memory_, 1));
}

Outcome EmulatedTest::run(std::uint64_t seed) {
  device_.fill(memory_, std::byte{0}, 4 * kWords);
  emulator::Options options;
  options.seed = seed;
  options.counters = false;
  options.threads = 1;
  result_ = emulator::run(program_, launch_, options);
  std::array<std::uint32_t, kWords> words{};
  device_.read(memory_, std::as_writable_bytes(std::span(words)));
  return {words.begin(), words.end()};
}

}  // namespace ptxgen::litmus
