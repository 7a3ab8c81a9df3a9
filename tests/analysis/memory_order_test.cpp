// tests/analysis/memory_order_test.cpp - every order with every scope, legal or refused
#include "ptxgen/analysis/memory_order.hpp"

#include <catch2/catch.hpp>
#include <set>

#include "ptxgen/builder.hpp"
#include "ptxgen/ptx.hpp"
#include "ptxgen/runtime/assemble/assembler.hpp"
#include "ptxgen/support/error.hpp"
#include "support/harness.hpp"

using namespace ptxgen;

namespace {

constexpr std::string_view kOps[] = {"ld", "st", "atom", "red", "fence"};
constexpr Order kOrders[] = {Order::none,    Order::weak,    Order::volatile_, Order::relaxed,
                             Order::acquire, Order::release, Order::acq_rel,   Order::sc};
constexpr Scope kScopes[] = {Scope::none, Scope::cta, Scope::cluster, Scope::gpu, Scope::sys};

std::string_view word(Order order) { return ptx::name(static_cast<ptx::Modifier>(order)); }
std::string_view word(Scope scope) { return ptx::name(static_cast<ptx::Modifier>(scope)); }

struct Combination {
  std::string_view op;
  Order order;
  Scope scope;

  /// The table of the memory model: weak and volatile without a scope, all others with one, which
  /// only atomic operations may leave out.
  [[nodiscard]] bool legal() const {
    const auto one_of = [&](std::initializer_list<Order> orders) {
      return std::find(orders.begin(), orders.end(), order) != orders.end();
    };
    const bool plain = one_of({Order::none, Order::weak, Order::volatile_});
    const bool scoped = scope != Scope::none;
    if (op == "ld") return plain ? !scoped : scoped && one_of({Order::relaxed, Order::acquire});
    if (op == "st") return plain ? !scoped : scoped && one_of({Order::relaxed, Order::release});
    if (op == "red") return one_of({Order::none, Order::relaxed, Order::release});
    if (op == "fence") {
      return scoped &&
             one_of({Order::none, Order::sc, Order::acq_rel, Order::acquire, Order::release});
    }
    return one_of({Order::none, Order::relaxed, Order::acquire, Order::release, Order::acq_rel});
  }

  [[nodiscard]] std::string opcode() const {
    std::string text(op);
    if (order != Order::none) text += "." + std::string(word(order));
    if (scope != Scope::none) text += "." + std::string(word(scope));
    return text;
  }
  [[nodiscard]] std::string statement() const {
    if (op == "ld") return opcode() + ".global.u32 %r0, [%rd0];";
    if (op == "st") return opcode() + ".global.u32 [%rd0], %r1;";
    if (op == "atom") return opcode() + ".global.add.u32 %r0, [%rd0], %r1;";
    if (op == "red") return opcode() + ".global.add.u32 [%rd0], %r1;";
    return opcode() + ";";
  }
  /// Statement in line 7.
  [[nodiscard]] std::string module() const {
    return ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n"
           ".reg .b32 %r<2>; .reg .b64 %rd<1>; ld.param.u64 %rd0, [p]; mov.u32 %r1, 1;\n" +
           statement() + "\nret;\n}\n";
  }
};

std::vector<Combination> all_combinations() {
  std::vector<Combination> all;
  for (const std::string_view op : kOps) {
    for (const Order order : kOrders) {
      for (const Scope scope : kScopes) all.push_back({op, order, scope});
    }
  }
  return all;
}

/// What the builder makes of it, or its refusal.
std::string built(const Combination& c) {
  std::string text;
  try {
    const auto kernel =
        build_kernel("k", "sm_90", params(param<Ptr<u32>>("p")), [&](KernelBuilder& k, Ptr<u32> p) {
          if (c.op == "ld") (void)k.ld(p, {.order = c.order, .scope = c.scope});
          if (c.op == "st") k.st(p, 1u, {.order = c.order, .scope = c.scope});
          if (c.op == "atom") (void)k.atom_add(p, 1u, {c.order, c.scope});
          if (c.op == "red") k.red_add(p, 1u, {c.order, c.scope});
          if (c.op == "fence") k.fence(c.order, c.scope);
        });
    text = kernel.ptx();
  } catch (const Error& error) {
    CHECK(error.code == "bad-operand");
    CHECK(error.site.known());
    return "refused: " + error.message;
  }
  return text;
}

std::string found(const Combination& c) {
  std::string text;
  for (const Finding& finding : ptx::verify(ptx::parse(c.module(), "k.ptx"))) {
    text += to_text(finding) + "\n";
  }
  return text;
}

const ptx::Instruction& seventh_line(const ptx::Module& module) {
  for (const ptx::Instruction& statement : module.functions[0].body) {
    if (statement.line == 7) return statement;
  }
  throw std::logic_error("no statement in line 7");
}

}  // namespace

TEST_CASE("builder and verifier take every legal order with every legal scope, and no other") {
  std::size_t legal = 0;
  for (const Combination& c : all_combinations()) {
    INFO(c.opcode());
    const std::string findings = found(c);
    const std::string text = built(c);
    if (c.legal()) {
      ++legal;
      CHECK(findings == "");
      CHECK(text.find("\n    " + c.opcode()) != std::string::npos);
      const ptx::Module module = ptx::parse(c.module());
      const ptx::Instruction& statement = seventh_line(module);
      CHECK(statement.get(ptx::Field::Order) == static_cast<ptx::Modifier>(c.order));
      CHECK(statement.get(ptx::Field::Scope) == static_cast<ptx::Modifier>(c.scope));
    } else {
      CHECK(findings.find("k.ptx:7: error: ") == 0);
      CHECK(findings.find(" [bad-operand]\n    in: " + c.opcode()) != std::string::npos);
      CHECK(findings.find("\n    rule: ") != std::string::npos);
      CHECK(findings.find("\n    cure: ") != std::string::npos);
      // The builder says the same.
      CHECK(text.find("refused: '") == 0);
      CHECK(findings.find("error: " + text.substr(9, text.find("; rule: ") - 9) +
                          " [bad-operand]") != std::string::npos);
    }
  }
  CHECK(legal == (3 + 2 * 4) * 2 + 5 * 5 + 3 * 5 + 5 * 4);
}

TEST_CASE("the assembler draws the same line") {
  const Assembler assembler(Settings::from_environment());
  if (!assembler.available())
    return test::skip("no assembler: install the CUDA 13 toolkit's nvJitLink or ptxas");
  for (const Combination& c : all_combinations()) {
    INFO(c.opcode());
    bool taken = true;
    try {
      (void)assembler.assemble(c.module(), {.target = "sm_90", .file = "k.ptx"});
    } catch (const Error& error) {
      CHECK(error.code == "rejected");
      taken = false;
    }
    CHECK(taken == c.legal());
  }
}

TEST_CASE("refusals of orders and scopes, in words") {
  const auto order_text = [](std::string_view op, Order order, Scope scope) {
    const std::string text = built({op, order, scope});
    return text.substr(0, 9) == "refused: " ? text.substr(9) : text;
  };
  CHECK(order_text("ld", Order::weak, Scope::gpu) ==
        "'ld.weak' takes no scope, but has .gpu; rule: a weak access is not ordered with other "
        "threads; cure: omit the scope, or use .relaxed");
  CHECK(order_text("st", Order::weak, Scope::cta) ==
        "'st.weak' takes no scope, but has .cta; rule: a weak access is not ordered with other "
        "threads; cure: omit the scope, or use .relaxed");
  CHECK(order_text("ld", Order::volatile_, Scope::sys) ==
        "'ld.volatile' takes no scope, but has .sys; rule: a volatile access has system scope; "
        "cure: omit the scope, or use .relaxed");
  CHECK(order_text("ld", Order::acquire, Scope::none) ==
        "'ld.acquire' needs a scope: one of .cta, .cluster, .gpu and .sys; rule: an order holds "
        "between the threads of a scope; cure: name the smallest scope that contains all "
        "participating threads");
  CHECK(order_text("fence", Order::acq_rel, Scope::none) ==
        "'fence.acq_rel' needs a scope: one of .cta, .cluster, .gpu and .sys; rule: an order holds "
        "between the threads of a scope; cure: name the smallest scope that contains all "
        "participating threads");
  CHECK(order_text("st", Order::none, Scope::gpu) ==
        "'st' has the scope .gpu and no order; rule: without an order an access is weak: it is not "
        "ordered with other threads; cure: use .relaxed or stronger, or omit the scope");
  CHECK(order_text("ld", Order::release, Scope::gpu) ==
        "'ld' cannot be .release; it has .weak, .volatile, .relaxed, .acquire and .mmio; rule: a "
        "release orders earlier accesses before a write, and 'ld' writes nothing; cure: use "
        ".acquire, or put fence.acq_rel before the write that others wait for");
  CHECK(order_text("ld", Order::acq_rel, Scope::gpu) ==
        "'ld' cannot be .acq_rel; it has .weak, .volatile, .relaxed, .acquire and .mmio; rule: a "
        "release orders earlier accesses before a write, and 'ld' writes nothing; cure: use "
        ".acquire, or put fence.acq_rel before the write that others wait for");
  CHECK(order_text("st", Order::acquire, Scope::gpu) ==
        "'st' cannot be .acquire; it has .weak, .volatile, .relaxed, .release and .mmio; rule: an "
        "acquire orders later accesses after a read, and 'st' reads nothing; cure: use "
        ".release, or put fence.acq_rel after the read that waits");
  CHECK(order_text("st", Order::acq_rel, Scope::gpu) ==
        "'st' cannot be .acq_rel; it has .weak, .volatile, .relaxed, .release and .mmio; rule: an "
        "acquire orders later accesses after a read, and 'st' reads nothing; cure: use "
        ".release, or put fence.acq_rel after the read that waits");
  CHECK(order_text("atom", Order::weak, Scope::none) ==
        "'atom' cannot be .weak; it has .relaxed, .acquire, .release and .acq_rel; rule: an atomic "
        "operation is visible to other threads; cure: use .relaxed");
  CHECK(order_text("red", Order::acquire, Scope::gpu) ==
        "'red' cannot be .acquire; it has .relaxed and .release; rule: an acquire needs the value "
        "that was read, and 'red' returns none; cure: use atom, or put fence.acq_rel after "
        "it");
  CHECK(order_text("st", Order::sc, Scope::gpu) ==
        "'st' cannot be .sc; it has .weak, .volatile, .relaxed, .release and .mmio; rule: only a "
        "fence is sequentially consistent; cure: put fence.sc before it");
  CHECK(order_text("fence", Order::relaxed, Scope::gpu) ==
        "'fence' cannot be .relaxed; it has .sc, .acq_rel, .acquire and .release; rule: a fence "
        "must order something; cure: use .acq_rel, or .sc");
}

TEST_CASE("orders and scopes that there are not, and two at once") {
  const auto order_text = [](const std::string& statement) {
    std::string text;
    for (const Finding& finding :
         ptx::verify(ptx::parse(".version 9.0\n.target sm_90\n.address_size 64\n"
                                ".visible .entry k()\n{\n.reg .b32 %r<2>; .reg .b64 %rd<1>;\n" +
                                    statement + "\nret;\n}\n",
                                "k.ptx"))) {
      text += to_text(finding) + "\n";
    }
    return text;
  };
  CHECK(order_text("ld.consume.gpu.global.u32 %r0, [%rd0];") ==
        "k.ptx:7: error: there is no memory order .consume; 'ld' has .weak, .volatile, .relaxed, "
        ".acquire and .mmio [bad-operand]\n"
        "    in: ld.consume.gpu.global.u32 %r0, [%rd0];\n"
        "    rule: the orders are those of the PTX memory model\n"
        "    cure: name one of them\n");
  CHECK(order_text("ld.acquire.device.global.u32 %r0, [%rd0];") ==
        "k.ptx:7: error: there is no scope .device; there are .cta, .cluster, .gpu and .sys "
        "[bad-operand]\n"
        "    in: ld.acquire.device.global.u32 %r0, [%rd0];\n"
        "    rule: an order holds between the threads of a scope\n"
        "    cure: write .gpu\n");
  CHECK(order_text("st.release.warp.global.u32 [%rd0], %r0;") ==
        "k.ptx:7: error: there is no scope .warp; there are .cta, .cluster, .gpu and .sys "
        "[bad-operand]\n"
        "    in: st.release.warp.global.u32 [%rd0], %r0;\n"
        "    rule: an order holds between the threads of a scope\n"
        "    cure: name the smallest scope that contains all participating threads\n");
  CHECK(order_text("ld.relaxed.acquire.gpu.global.u32 %r0, [%rd0];") ==
        "k.ptx:7: error: 'ld' has two orders, .relaxed and .acquire [bad-operand]\n"
        "    in: ld.relaxed.acquire.gpu.global.u32 %r0, [%rd0];\n"
        "    rule: an access or a fence has one order\n"
        "    cure: keep one of them\n");
  CHECK(order_text("fence;").find("'fence' needs a scope: one of .cta") != std::string::npos);
  // What is unknown for another reason stays a warning.
  for (const char* statement :
       {"ld.frobnicate.u32 %r0, [%rd0];", "red.async.frobnicate.u32 [%rd0], %r0;",
        "fence.proxy.frobnicate.gpu;", "ld.acquire.gpu.u33 %r0, [%rd0];", "barrier.gpu;"}) {
    INFO(statement);
    CHECK(order_text(statement).find("k.ptx:7: warning: ") == 0);
  }
}

TEST_CASE("what each order holds back") {
  const auto text = [](std::string_view op, Order order, Scope scope = Scope::gpu) {
    const ptx::Module module = ptx::parse(Combination{op, order, scope}.module());
    return to_text(analysis::memory_order(seventh_line(module)));
  };
  CHECK(text("ld", Order::none, Scope::none) == "reads");
  CHECK(text("ld", Order::weak, Scope::none) == "reads, weak");
  CHECK(text("ld", Order::volatile_, Scope::none) == "reads, volatile, fixed");
  CHECK(text("st", Order::none, Scope::none) == "writes, fixed");
  for (const Scope scope : {Scope::cta, Scope::cluster, Scope::gpu, Scope::sys}) {
    const std::string where = "." + std::string(word(scope));
    CHECK(text("ld", Order::relaxed, scope) == "reads, relaxed" + where + ", fixed");
    CHECK(text("ld", Order::acquire, scope) == "reads, acquire" + where + ", holds later, fixed");
    CHECK(text("st", Order::relaxed, scope) == "writes, relaxed" + where + ", fixed");
    CHECK(text("st", Order::release, scope) ==
          "writes, release" + where + ", holds earlier, fixed");
    CHECK(text("atom", Order::relaxed, scope) == "reads, writes, relaxed" + where + ", fixed");
    CHECK(text("atom", Order::acquire, scope) ==
          "reads, writes, acquire" + where + ", holds later, fixed");
    CHECK(text("atom", Order::release, scope) ==
          "reads, writes, release" + where + ", holds earlier, fixed");
    CHECK(text("atom", Order::acq_rel, scope) ==
          "reads, writes, acq_rel" + where + ", holds later, holds earlier, fixed");
    CHECK(text("red", Order::release, scope) ==
          "reads, writes, release" + where + ", holds earlier, fixed");
    for (const Order order : {Order::sc, Order::acq_rel, Order::acquire, Order::release}) {
      CHECK(text("fence", order, scope) ==
            std::string(word(order)) + where + ", holds later, holds earlier, fixed");
    }
  }
}

TEST_CASE("what may change places and what may vanish") {
  const auto statement = [](const std::string& text) {
    const ptx::Module module = ptx::parse(
        ".version 9.0\n.target sm_90\n.address_size 64\n.func f() { ret; }\n"
        ".visible .entry k()\n{\n.reg .b32 %r<2>; .reg .b64 %rd<1>; .reg .f32 %f<3>;\n.shared "
        ".align 8 .b64 bar;\n" +
        text + "\nret;\n}\n");
    for (const ptx::Instruction& s : module.functions[1].body) {
      if (s.line == 9) return s;
    }
    throw std::logic_error(text);
  };
  const std::string weak = "ld.global.u32 %r0, [%rd0];";
  const std::string store = "st.global.u32 [%rd0], %r1;";
  const std::string acquire = "ld.acquire.gpu.global.u32 %r0, [%rd0];";
  const std::string release = "st.release.gpu.global.u32 [%rd0], %r1;";
  const std::string relaxed = "ld.relaxed.gpu.global.u32 %r0, [%rd0];";
  const std::string add = "add.u32 %r0, %r1, 1;";
  const auto swap = [&](const std::string& a, const std::string& b) {
    return analysis::may_swap(statement(a), statement(b));
  };
  CHECK(swap(weak, weak));
  CHECK(swap(weak, acquire));
  CHECK_FALSE(swap(acquire, weak));
  CHECK_FALSE(swap(weak, release));
  CHECK_FALSE(swap(release, weak));
  CHECK_FALSE(swap(weak, store));
  CHECK_FALSE(swap(store, weak));
  CHECK_FALSE(swap(store, store));
  CHECK_FALSE(swap(relaxed, relaxed));
  CHECK(swap(relaxed, weak));
  for (const std::string& fence :
       {std::string("fence.acq_rel.gpu;"), std::string("membar.gl;"), std::string("bar.sync 0;"),
        std::string("fence.acquire.gpu;"), std::string("call f;"), std::string("frobnicate;"),
        std::string("barrier.cluster.arrive;"), std::string("cp.async.wait_all;"),
        std::string("mbarrier.arrive.shared.b64 _, [bar];")}) {
    INFO(fence);
    for (const std::string& access : {weak, store, acquire, release, relaxed}) {
      INFO(access);
      CHECK_FALSE(swap(fence, access));
      CHECK_FALSE(swap(access, fence));
    }
    CHECK_FALSE(swap(fence, fence));
    CHECK(analysis::memory_order(statement(fence)).is_fence());
    CHECK(swap(fence, add));
    CHECK_FALSE(analysis::may_vanish(statement(fence)));
  }
  for (const std::string& gone : {weak, add, std::string("ld.global.nc.u32 %r0, [%rd0];")}) {
    CHECK(analysis::may_vanish(statement(gone)));
    CHECK(swap(gone, add));
  }
  for (const std::string& kept :
       {store, acquire, release, relaxed, std::string("ld.volatile.global.u32 %r0, [%rd0];"),
        std::string("atom.global.add.u32 %r0, [%rd0], 1;"), std::string("bra.uni L;\nL:")}) {
    CHECK_FALSE(analysis::may_vanish(statement(kept)));
  }
}
