// tests/litmus/token_litmus_test.cpp - token programs and their PTX against the memory model
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdio>

#include "support/harness.hpp"
#include "token_litmus.hpp"

using namespace ptxgen::litmus;

namespace {

bool is_subset(const Allowed& part, const Allowed& all) {
  return std::ranges::all_of(part, [&](const auto& each) { return all.contains(each.first); });
}

std::string title(const Shape& shape, const Placement& placement) {
  return std::string(shape.name) + ", " + std::string(placement.name) + ": ";
}

bool is_forbidden(const Shape& shape, const Placement& placement, Use a, Use b) {
  const TokenTest test = shape.make(a, b);
  return !has_outcome(shape, allowed(lowered(build(test, placement), placement)));
}

// What the axioms allow for the tokens, for the PTX, and by the shape's own rule.
bool check(const Shape& shape, const Placement& placement, Use a, Use b) {
  INFO(title(shape, placement) << to_text(a) << ", " << to_text(b));
  const TokenTest test = shape.make(a, b);
  const Allowed by_ptx = allowed(lowered(build(test, placement), placement));
  const Allowed by_token = allowed(by_tokens(test, placement));
  const bool forbids =
      shape.forbids(a.order, b.order) && placement.reaches(a.scope) && placement.reaches(b.scope);
  CHECK(has_outcome(shape, by_token) == !forbids);
  CHECK(has_outcome(shape, by_ptx) == !forbids);
  CHECK(is_subset(by_ptx, by_token));
  return forbids;
}

}  // namespace

TEST_CASE("falsification 68: PTX of token programs allows no more than their tokens") {
  // Every pair of orders and scopes; every day each eighth pair, others with other seeds.
  const std::uint64_t step = ptxgen::test::full() ? 1 : 8;
  std::uint64_t pair = ptxgen::test::seed();
  int programs = 0;
  int forbidden = 0;
  for (const Shape& shape : shapes()) {
    for (const Placement& placement : placements(shape.make({}, {}).threads.size())) {
      for (const Use a : uses_of(shape.first)) {
        for (const Use b : uses_of(shape.second)) {
          if (pair++ % step != 0) continue;
          ++programs;
          forbidden += check(shape, placement, a, b) ? 1 : 0;
        }
      }
    }
  }
  std::printf("%d token programs, of which %d forbid the outcome\n", programs, forbidden);
  CHECK(forbidden > 0);
}

namespace {

/// The orders one step weaker.
std::vector<Order> weaker_orders(Order order) {
  if (order == Order::Sc) return {Order::AcqRel};
  if (order == Order::AcqRel) return {Order::Acquire, Order::Release};
  if (order == Order::Relaxed) return {Order::Weak};
  return {Order::Relaxed};
}

/// The narrowest scope that has all threads.
Scope sufficient(const Placement& placement) {
  for (const Scope scope : {Scope::Cta, Scope::Cluster}) {
    if (placement.reaches(scope)) return scope;
  }
  return Scope::Gpu;
}

/// One step less, in order or in scope.
std::vector<Use> weakened(Kind kind, Use use) {
  std::vector<Use> all;
  if (kind == Kind::Fence && use.order == Order::AcqRel) {
    all.push_back({});
  } else {
    for (const Order order : weaker_orders(use.order)) {
      all.push_back(order == Order::Weak ? Use{} : Use{order, use.scope});
    }
  }
  if (use.scope != Scope::Cta) {
    all.push_back({use.order, static_cast<Scope>(static_cast<int>(use.scope) - 1)});
  }
  return all;
}

/// The weakest pair of uses that forbids the outcome, and all that is one step less, each of which
/// allows it. Empty if no pair forbids it.
std::string weakest(const Shape& shape, const Placement& placement) {
  const Scope scope = sufficient(placement);
  for (const Use a : uses_of(shape.first)) {
    for (const Use b : uses_of(shape.second)) {
      if (a.scope != scope || b.scope != scope || !is_forbidden(shape, placement, a, b)) continue;
      std::string less;
      bool any = false;
      for (const Use& use : weakened(shape.first, a)) {
        any |= is_forbidden(shape, placement, use, b);
        less += (less.empty() ? "; " : " or ") + to_text(use);
      }
      const std::size_t first = less.size();
      for (const Use& use : weakened(shape.second, b)) {
        any |= is_forbidden(shape, placement, a, use);
        less += (less.size() == first ? "; " : " or ") + to_text(use);
      }
      if (!any) return to_text(a) + ", " + to_text(b) + less;
    }
  }
  return "";
}

}  // namespace

TEST_CASE("falsification 77: a forbidden outcome is allowed with one order or scope less") {
  const auto rule = [](std::string_view name) {
    const Shape& shape = *std::ranges::find(shapes(), name, &Shape::name);
    std::string text;
    for (const Placement& placement : placements(shape.make({}, {}).threads.size())) {
      const std::string line = weakest(shape, placement);
      if (!line.empty()) text += std::string(placement.name) + ": " + line + "\n";
    }
    return text;
  };
  const std::string synchronise =
      "one block: release cta, acquire cta; relaxed cta; relaxed cta\n"
      "between blocks: release gpu, acquire gpu; relaxed gpu or release cluster; "
      "relaxed gpu or acquire cluster\n"
      "a cluster: release cluster, acquire cluster; relaxed cluster or release cta; "
      "relaxed cluster or acquire cta\n";
  const std::string sequential =
      "one block: sc cta, sc cta; acq_rel cta; acq_rel cta\n"
      "between blocks: sc gpu, sc gpu; acq_rel gpu or sc cluster; acq_rel gpu or sc cluster\n"
      "a cluster: sc cluster, sc cluster; acq_rel cluster or sc cta; acq_rel cluster or sc cta\n";
  const std::string strong =
      "one block: relaxed cta, relaxed cta; weak; weak\n"
      "between blocks: relaxed gpu, relaxed gpu; weak or relaxed cluster; "
      "weak or relaxed cluster\n"
      "a cluster: relaxed cluster, relaxed cluster; weak or relaxed cta; weak or relaxed cta\n";
  CHECK(rule("MP") == synchronise);
  CHECK(rule("MP that reads what was released") == synchronise);
  CHECK(rule("MP of atomics") == synchronise);
  CHECK(rule("MP with fences") ==
        "one block: acq_rel cta, acq_rel cta; weak; weak\n"
        "between blocks: acq_rel gpu, acq_rel gpu; weak or acq_rel cluster; "
        "weak or acq_rel cluster\n"
        "a cluster: acq_rel cluster, acq_rel cluster; weak or acq_rel cta; weak or acq_rel cta\n");
  CHECK(rule("SB") == "");
  CHECK(rule("SB with fences") == sequential);
  CHECK(rule("LB") ==
        "one block: acquire cta, release cta; relaxed cta; relaxed cta\n"
        "between blocks: acquire gpu, release gpu; relaxed gpu or acquire cluster; "
        "relaxed gpu or release cluster\n"
        "a cluster: acquire cluster, release cluster; relaxed cluster or acquire cta; "
        "relaxed cluster or release cta\n");
  CHECK(rule("IRIW") == "");
  CHECK(rule("IRIW of strong accesses with fences") == strong);
  CHECK(rule("IRIW with fences") == sequential);
  CHECK(rule("CoRR") == strong);
  CHECK(rule("2+2W") == "");
  CHECK(rule("2+2W with fences") == sequential);
}

TEST_CASE("falsification 77: without its token the release comes too early") {
  for (const Placement& placement : placements(2)) {
    const Shape& mp = shapes()[0];
    TokenTest test = mp.make({Order::Release, Scope::Sys}, {Order::Acquire, Scope::Sys});
    CHECK_FALSE(has_outcome(mp, allowed(by_tokens(test, placement))));
    test.threads[0][1].linked = false;
    CHECK(has_outcome(mp, allowed(by_tokens(test, placement))));
    // Emitted in the order of the calls, which is one of those that the tokens allow.
    const Allowed by_ptx = allowed(lowered(build(test, placement), placement));
    CHECK_FALSE(has_outcome(mp, by_ptx));
    CHECK(is_subset(by_ptx, allowed(by_tokens(test, placement))));
  }
}
