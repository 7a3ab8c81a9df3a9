// tests/litmus/token_litmus_test.cpp - token programs and their PTX against the memory model
#include <algorithm>
#include <catch2/catch.hpp>

#include "token_litmus.hpp"

using namespace ptxgen::litmus;

namespace {

bool is_subset(const Allowed& part, const Allowed& whole) {
  return std::ranges::all_of(part, [&](const auto& each) { return whole.contains(each.first); });
}

std::string title(const Shape& shape, const Placement& placement, Use a, Use b) {
  return std::string(shape.name) + ", " + std::string(placement.name) + ": " +
         to_text(a) + ", " + to_text(b);
}

bool is_forbidden(const Shape& shape, const Placement& placement, Use a, Use b) {
  const TokenTest test = shape.make(a, b);
  return !has_outcome(shape, allowed(lowered(build(test, placement), placement)));
}

}  // namespace

TEST_CASE("falsification 68: token programs lower to PTX that allows no more than their tokens") {
  std::size_t programs = 0;
  std::size_t forbidden = 0;
  for (const Shape& shape : shapes()) {
    const std::size_t threads = shape.make({}, {}).threads.size();
    for (const Placement& placement : placements(threads)) {
      for (const Use a : uses_of(shape.first)) {
        for (const Use b : uses_of(shape.second)) {
          INFO(title(shape, placement, a, b));
          const TokenTest test = shape.make(a, b);
          const Allowed by_ptx = allowed(lowered(build(test, placement), placement));
          const Allowed by_token = allowed(by_tokens(test, placement));
          const bool forbids = shape.forbids(a.order, b.order) && placement.reaches(a.scope) &&
                               placement.reaches(b.scope);
          CHECK(has_outcome(shape, by_token) == !forbids);
          CHECK(has_outcome(shape, by_ptx) == !forbids);
          CHECK(is_subset(by_ptx, by_token));
          ++programs;
          forbidden += forbids ? 1 : 0;
        }
      }
    }
  }
  WARN(programs << " programs, the outcome is forbidden in " << forbidden);
}

namespace {

/// The same operation one step weaker in its order.
std::vector<Order> weaker_orders(Kind kind, Order order) {
  if (kind == Kind::Fence) return {Order::AcqRel};
  if (order == Order::AcqRel) return {Order::Acquire, Order::Release};
  if (order == Order::Relaxed) return {Order::Weak};
  return {Order::Relaxed};
}

/// The narrowest scope that has all threads, and the next narrower one.
Scope sufficient(const Placement& placement) {
  for (const Scope scope : {Scope::Cta, Scope::Cluster}) {
    if (placement.reaches(scope)) return scope;
  }
  return Scope::Gpu;
}
Scope narrower(Scope scope) { return static_cast<Scope>(static_cast<int>(scope) - 1); }

/// The uses of one step less than (a, b), in order and in scope, that do not forbid by themselves.
std::vector<std::pair<Use, Use>> weakened(const Shape& shape, Use a, Use b) {
  std::vector<std::pair<Use, Use>> all;
  const auto with_scope = [](Order order, Scope scope) {
    return Use{order, order == Order::Weak ? Scope::None : scope};
  };
  for (const Order order : weaker_orders(shape.first, a.order)) {
    all.push_back({with_scope(order, a.scope), b});
  }
  for (const Order order : weaker_orders(shape.second, b.order)) {
    all.push_back({a, with_scope(order, b.scope)});
  }
  if (a.scope != Scope::Cta) {
    all.push_back({{a.order, narrower(a.scope)}, b});
    all.push_back({a, {b.order, narrower(b.scope)}});
  }
  return all;
}

/// The weakest uses that forbid the outcome in this placement, a line each, and below each what one
/// step less does.
std::string weakening(const Shape& shape, const Placement& placement) {
  const Scope scope = sufficient(placement);
  std::string text;
  for (const Use a : uses_of(shape.first)) {
    for (const Use b : uses_of(shape.second)) {
      if (a.scope != scope || b.scope != scope || !is_forbidden(shape, placement, a, b)) continue;
      std::string less;
      bool weakest = true;
      for (const auto& [x, y] : weakened(shape, a, b)) {
        const bool forbidden = is_forbidden(shape, placement, x, y);
        weakest &= !forbidden;
        less += "    allowed by " + to_text(x) + " and " + to_text(y) + "\n";
      }
      if (weakest) text += title(shape, placement, a, b) + "\n" + less;
    }
  }
  return text;
}

}  // namespace

TEST_CASE("falsification 77: what is forbidden is allowed when one order or scope is weakened") {
  std::string text;
  for (const Shape& shape : shapes()) {
    for (const Placement& placement : placements(shape.make({}, {}).threads.size())) {
      text += weakening(shape, placement);
    }
  }
  CHECK(text == "");
}
