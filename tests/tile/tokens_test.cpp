// tests/tile/tokens_test.cpp - token-ordered operations: what is legal, what is refused
#include <bit>
#include <catch2/catch.hpp>

#include "ptxgen/builder/token.hpp"
#include "refusal.hpp"
#include "tile_rig.hpp"

using namespace ptxgen;
using test::refusal;
using tile::TokenAccess;

namespace {

constexpr const char* kValues =
    "%p : ptr<f32>[4]\n%v : f32[4]\n%w : f32[8]\n%i : s32[4]\n%m : i1[4]\n%n : i1[8]\n%x : "
    "f32[4]\n";

std::string findings(const std::string& lines) {
  std::string text;
  for (const Finding& finding : tile::verify_tokens(kValues + lines)) {
    CHECK(finding.rule == "tokens");
    text += std::to_string(finding.line) + ": " + finding.message + "\n";
  }
  return text;
}

constexpr TokenOrder kOrders[] = {TokenOrder::Weak, TokenOrder::Relaxed, TokenOrder::Acquire,
                                  TokenOrder::Release, TokenOrder::AcqRel};
constexpr TokenScope kScopes[] = {TokenScope::None, TokenScope::Block, TokenScope::Cluster,
                                  TokenScope::Device, TokenScope::System};

/// The table of the specification.
bool is_legal(TokenAccess access, TokenOrder order) {
  switch (access) {
    case TokenAccess::Load:
      return order == TokenOrder::Weak || order == TokenOrder::Relaxed ||
             order == TokenOrder::Acquire;
    case TokenAccess::Store:
      return order == TokenOrder::Weak || order == TokenOrder::Relaxed ||
             order == TokenOrder::Release;
    case TokenAccess::Reduce:
      return order == TokenOrder::Relaxed;
    default:
      return order != TokenOrder::Weak;
  }
}

}  // namespace

TEST_CASE("every order and scope of every operation: legal or refused") {
  const std::pair<TokenAccess, std::string> forms[] = {
      {TokenAccess::Load, "%r, %t = load %p "},
      {TokenAccess::Store, "%t = store %p, %v "},
      {TokenAccess::Rmw, "%r, %t = rmw add %p, %v "},
      {TokenAccess::Cas, "%r, %t = cas %p, %v, %x "},
      {TokenAccess::Reduce, "%t = reduce add %p, %v "}};
  for (const auto& [access, form] : forms) {
    for (const TokenOrder order : kOrders) {
      for (const TokenScope scope : kScopes) {
        const bool scoped = (scope != TokenScope::None) == (order != TokenOrder::Weak);
        const std::string mistake = tile::order_mistake(access, order, scope);
        INFO(form << to_string(order) << " " << to_string(scope));
        CHECK(mistake.empty() == (is_legal(access, order) && scoped));
        const std::string line =
            form + std::string(to_string(order)) + " " + std::string(to_string(scope)) + "\n";
        CHECK(findings(line) == (mistake.empty() ? "" : "8: " + mistake + "\n"));
      }
    }
  }
}

TEST_CASE("legal programs: masks, paddings, stores without token, joins") {
  CHECK(findings("%t0 = make_token\n"
                 "%a, %t1 = load %p weak after %t0 mask %m padding %x\n"
                 "%b, %t2 = load %p acquire device mask %m\n"
                 "%t3 = store %p, %a weak\n"
                 "%t4 = store %p, %b release system after %t2 mask %m\n"
                 "%t5 = join_tokens %t1, %t3, %t4  # all\n"
                 "%c, %t6 = cas %p, %a, %b acq_rel cluster after %t5\n") == "");
}

TEST_CASE("orders and scopes that are refused, by text") {
  CHECK(
      findings("%r, %t = load %p weak device\n") ==
      "8: a weak load of scope device; rule: a weak operation has no scope; cure: leave the scope "
      "out, or use relaxed\n");
  CHECK(
      findings("%t = store %p, %v weak block\n") ==
      "8: a weak store of scope block; rule: a weak operation has no scope; cure: leave the scope "
      "out, or use relaxed\n");
  CHECK(findings("%r, %t = load %p relaxed\n") ==
        "8: a relaxed load without a scope; rule: every order but weak has one; cure: name block, "
        "cluster, device or system\n");
  CHECK(
      findings("%r, %t = load %p release device\n") ==
      "8: a load that is release; rule: the orders of a load are weak, relaxed, acquire; cure: use "
      "one of these\n");
  CHECK(findings("%t = store %p, %v acquire device\n") ==
        "8: a store that is acquire; rule: the orders of a store are weak, relaxed, release; cure: "
        "use one of these\n");
  CHECK(findings("%r, %t = load %p acq_rel device\n").find("a load that is acq_rel") !=
        std::string::npos);
  CHECK(findings("%t = store %p, %v acq_rel device\n").find("a store that is acq_rel") !=
        std::string::npos);
  CHECK(
      findings("%r, %t = load %p strong device\n") ==
      "8: unknown order 'strong'; rule: orders are weak, relaxed, acquire, release, acq_rel; cure: "
      "use one of these\n");
  CHECK(findings("%r, %t = load %p relaxed gpu\n") ==
        "8: unknown scope 'gpu'; rule: scopes are block, cluster, device, system; cure: use one of "
        "these\n");
  CHECK(findings("%r, %t = load %p\n").find("'load' without an order") != std::string::npos);
}

TEST_CASE("operands of other types and shapes are refused, by text") {
  CHECK(findings("%r, %t = load %p weak after %v\n") ==
        "8: '%v' is f32[4], and orders 'load'; rule: only tokens order operations; cure: pass the "
        "token that an operation or make_token gives\n");
  CHECK(findings("%t = store %p, %v weak after %p\n")
            .find("'%p' is ptr<f32>[4], and orders 'store'") != std::string::npos);
  CHECK(findings("%t = join_tokens\n") ==
        "8: join_tokens of 0 tokens; rule: a join has two tokens or more; cure: use the token "
        "itself, or make_token\n");
  CHECK(findings("%t0 = make_token\n%t = join_tokens %t0\n").find("9: join_tokens of 1 token;") ==
        0);
  CHECK(findings("%t0 = make_token\n%t = join_tokens %t0, %v\n")
            .find("'%v' is f32[4], and orders 'join_tokens'") != std::string::npos);
  CHECK(
      findings("%r, %t = load %v weak\n") ==
      "8: 'load' through '%v', which is f32[4]; rule: memory is accessed through a pointer; cure: "
      "pass a value of type ptr<...>\n");
  CHECK(
      findings("%t = store %p, %i weak\n") ==
      "8: the value '%i' of 'store' is s32[4], and f32[4] is expected; rule: values have the type "
      "and the shape of what the pointer points to; cure: convert it\n");
  CHECK(findings("%t = store %p, %w weak\n").find("is f32[8], and f32[4] is expected") !=
        std::string::npos);
  CHECK(
      findings("%r, %t = load %p weak mask %v\n") ==
      "8: the mask '%v' of 'load' is f32[4], and i1[4] is expected; rule: a mask is i1 and has the "
      "pointer's shape; cure: convert it\n");
  CHECK(findings("%t = store %p, %v weak mask %n\n")
            .find("the mask '%n' of 'store' is i1[8], and i1[4]") != std::string::npos);
  CHECK(findings("%r, %t = load %p weak mask %m padding %w\n")
            .find("the padding '%w' of 'load' is f32[8]") != std::string::npos);
  CHECK(findings("%r, %t = load %p weak mask %m padding %i\n")
            .find("the padding '%i' of 'load' is s32[4]") != std::string::npos);
  CHECK(findings("%r, %t = load %p weak padding %x\n").find("with a padding and no mask") !=
        std::string::npos);
  CHECK(
      findings("%r, %t = load %q weak\n") ==
      "8: '%q' is not defined; rule: an operand is a value of the program; cure: define it before "
      "its use\n");
  CHECK(findings("%t = load %p weak\n")
            .find("'load' with 1 result; rule: it gives a value and a token") != std::string::npos);
  CHECK(findings("%t = print %p\n").find("unknown operation 'print'") != std::string::npos);
  CHECK(findings("%t = make_token\n%t = make_token\n").find("9: '%t' is defined again") == 0);
}

TEST_CASE("falsification 79: a cycle of tokens is an error with its path") {
  CHECK(
      findings("%t1 = store %p, %v weak after %t3\n"
               "%t2 = store %p, %v weak after %t1\n"
               "%t0 = make_token\n"
               "%t3 = join_tokens %t0, %t2\n") ==
      "8: tokens in a cycle: %t1 (line 8) after %t3 (line 11) after %t2 (line 9) after %t1; rule: "
      "an operation comes after those whose tokens it takes; cure: carry a token through a loop as "
      "a value of the loop\n");
  CHECK(findings("%t1 = store %p, %v weak after %t1\n")
            .find("tokens in a cycle: %t1 (line 8) after %t1;") != std::string::npos);
  // Through a value: the store needs what the load gives.
  CHECK(findings("%r, %t1 = load %p weak after %t2\n%t2 = store %p, %r weak\n")
            .find("%t1 (line 8) after %t2 (line 9) after %t1") != std::string::npos);
  // A long chain is walked without recursion.
  std::string chain = "%t0 = make_token\n";
  for (int i = 1; i < 100'000; ++i) {
    chain +=
        "%t" + std::to_string(i) + " = store %p, %v weak after %t" + std::to_string(i - 1) + "\n";
  }
  CHECK(findings(chain) == "");
}

TEST_CASE("falsification 75, 80: tokens cost no instruction and keep their C++ lines") {
  std::string text;
  std::uint32_t line = 0;
  SourceLocation site;
  const auto build = [&](bool tokens) {
    return build_kernel("store", "sm_90", params(param<Ptr<f32>>("p"), param<Ptr<u32>>("flag")),
                        [&](KernelBuilder& k, Ptr<f32> p, Ptr<u32> flag) {
                          TokenProgram program(k);
                          const Value<f32> one = k.constant<f32>(1.0f);
                          if (!tokens) {
                            k.st(p, one);
                            k.st(flag, 1u, {.order = Order::release, .scope = Scope::gpu});
                            return;
                          }
                          const Token start = program.make_token();
                          const Token data = program.store_ptr(p, one, {.after = &start});
                          line = __LINE__ - 1;
                          const Token both = program.join_tokens({start, data});
                          (void)program.store_ptr(flag, 1u,
                                                  {TokenOrder::Release, TokenScope::Device, &both});
                          text = program.text();
                          site = program.site_of(data);
                        })
        .ptx();
  };
  CHECK(build(true) == build(false));
  CHECK(build(true).find("st.release.gpu.global.u32") != std::string::npos);
  CHECK(site.line == line);
  CHECK(tile::verify_tokens(text).empty());
  CHECK(text.find("%t1 = store %p1, %a1_0 weak after %t0") != std::string::npos);
}

TEST_CASE("the builder refuses what the rules refuse") {
  const auto refused = [](const auto& body) {
    return refusal([&] {
      (void)build_kernel("refused", "sm_90", params(param<Ptr<f32>>("p")),
                         [&](KernelBuilder& k, Ptr<f32> p) {
                           TokenProgram program(k);
                           body(program, p);
                         });
    });
  };
  using P = TokenProgram;
  CHECK(refused([](P& t, Ptr<f32> p) {
          (void)t.load_ptr(p, {TokenOrder::Release, TokenScope::Device});
        }) ==
        "tokens: a load that is release; rule: the orders of a load are weak, relaxed, acquire; "
        "cure: "
        "use one of these");
  CHECK(refused([](P& t, Ptr<f32> p) {
          (void)t.store_ptr(p, 1.0f, {TokenOrder::Weak, TokenScope::Block});
        }) ==
        "tokens: a weak store of scope block; rule: a weak operation has no scope; cure: leave the "
        "scope out, or use relaxed");
  CHECK(refused([](P& t, Ptr<f32> p) { (void)t.atomic_rmw(TokenRmw::Add, p, 1.0f, {}); }) ==
        "tokens: a rmw that is weak; rule: the orders of a rmw are relaxed, acquire, release, "
        "acq_rel; cure: use one of these");
  CHECK(refused([](P& t, Ptr<f32>) { (void)t.join_tokens({t.make_token()}); }) ==
        "tokens: join_tokens of 1 token; rule: a join has two tokens or more; cure: use the token "
        "itself, or make_token");
  CHECK(
      refused([](P& t, Ptr<f32> p) {
        KernelBuilder other("other", "sm_90");
        TokenProgram program(other);
        const Token token = program.make_token();
        (void)t.load_ptr(p, {.after = &token});
      }) ==
      "tokens: a token of another program; rule: tokens order the operations of one kernel; cure: "
      "take a token that this program gave");
}

TEST_CASE(
    "falsification 73, 76: token-ordered stores, loads and a chain of atomics on the emulator") {
  const BuiltKernel kernel = build_kernel(
      "chain", "sm_90", params(param<Ptr<f32>>("out"), param<Ptr<u32>>("count")),
      [](KernelBuilder& k, Ptr<f32> out, Ptr<u32> count) {
        TokenProgram program(k);
        const auto first =
            program.atomic_rmw(TokenRmw::Add, count, 1u, {TokenOrder::AcqRel, TokenScope::Device});
        const auto second = program.atomic_cas(
            count, 1u, 7u, {TokenOrder::AcqRel, TokenScope::Device, &first.token});
        const Token stored =
            program.store_ptr(out + 1, k.constant<f32>(2.5f), {.after = &second.token});
        const auto loaded = program.load_ptr(out + 1, {.after = &stored});
        (void)program.store_ptr(out, loaded.value, {.after = &loaded.token});
      });
  std::vector<test::TileArgument> arguments{std::vector<float>{0, 0}, std::vector<float>{0}};
  const emulator::Result result = test::run_tiles(kernel, {1}, 1, arguments);
  CHECK(test::findings_of(result) == "");
  CHECK(arguments[0].memory == std::vector<float>{2.5f, 2.5f});
  CHECK(std::bit_cast<std::uint32_t>(arguments[1].memory[0]) == 7);
}
