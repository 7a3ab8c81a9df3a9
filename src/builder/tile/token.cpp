// src/builder/tile/token.cpp - memory operations ordered by tokens
#include "ptxgen/builder/token.hpp"

#include <algorithm>

#include "ptxgen/builder/cluster.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0 {

Order TokenProgram::order(const TokenUse& use) noexcept {
  constexpr Order kOrders[] = {Order::none, Order::relaxed, Order::acquire, Order::release,
                               Order::acq_rel};
  return kOrders[static_cast<std::size_t>(use.order)];
}

Scope TokenProgram::scope(const TokenUse& use) noexcept {
  constexpr Scope kScopes[] = {Scope::none, Scope::cta, Scope::cluster, Scope::gpu, Scope::sys};
  return kScopes[static_cast<std::size_t>(use.scope)];
}

TokenProgram::TokenProgram(KernelBuilder& k, TokenThreads threads, Site site)
    : k_(&k), threads_(threads) {
  using Barrier = TokenThreads::Barrier;
  if (threads_.threads % 32 != 0 || threads_.threads > 1024 || threads_.number > 15 ||
      (threads_.barrier == Barrier::Mbarrier && threads_.threads == 0) ||
      (threads_.threads != 0 && threads_.barrier == Barrier::Sync && threads_.number == 0)) {
    k.refuse("tokens",
             format_text("tokens of {} threads at barrier {}; rule: whole warps, at most 1024 "
                         "threads; some of the block have a barrier of their own, 1 to 15; cure: "
                         "use TokenThreads::block, warps or mbarrier",
                         threads_.threads, threads_.number),
             site);
  }
  if (threads_.barrier != Barrier::Mbarrier) return;
  mbarrier_.emplace(k.shared<u64>(1, {}, 16, site).base());
  k.if_(k.tid_x(site) == 0u, [&] { mbarrier_init(k, *mbarrier_, threads_.threads, site); });
  k.bar_sync(0u, site);
  phase_.emplace(k.var<u32>(0u, site));
}

/// What the threads did before, all of them see afterwards.
void TokenProgram::order_threads(Site site) {
  switch (threads_.barrier) {
    case TokenThreads::Barrier::None:
      return;
    case TokenThreads::Barrier::Sync:
      if (threads_.threads == 0) {
        k_->bar_sync(threads_.number, site);
      } else {
        k_->bar_sync(threads_.number, threads_.threads, site);
      }
      return;
    case TokenThreads::Barrier::Mbarrier:
      mbarrier_arrive(*k_, *mbarrier_, site);
      mbarrier_wait(*k_, *mbarrier_, *phase_, Scope::none, site);
      *phase_ = *phase_ ^ 1u;
      return;
  }
}

Token TokenProgram::add(std::string text, bool accesses, Site site) {
  const auto id = static_cast<std::uint32_t>(operations_.size());
  operations_.push_back({std::move(text), site, accesses});
  return {this, id};
}

void TokenProgram::check_token(const Token& token, Site site) {
  if (token.program_ == this) return;
  k_->refuse("tokens",
             "a token of another program; rule: tokens order the operations of one kernel; cure: "
             "take a token that this program gave",
             site);
}

void TokenProgram::check_view(tile::TokenAccess access, const TokenUse& use, Site site) {
  if (use.order == TokenOrder::Weak) return;
  k_->refuse(
      "tokens",
      format_text("a {} that is {}, through a view; rule: a tile is accessed by vectors of several "
                  "elements, which are weak; cure: use a pointer, or a release or acquire "
                  "of a flag that takes or gives the token",
                  to_string(access), to_string(use.order)),
      site);
}

Token TokenProgram::make_token(Site site) {
  return add(format_text("%t{} = make_token", operations_.size()), false, site);
}

Token TokenProgram::join_tokens(std::initializer_list<Token> tokens, Site site) {
  std::string text = format_text("%t{} = join_tokens", operations_.size());
  for (const Token& token : tokens) {
    check_token(token, site);
    text += format_text("{} %t{}", &token == tokens.begin() ? "" : ",", token.id_);
  }
  if (tokens.size() < 2) {
    k_->refuse("tokens",
               format_text("join_tokens of {}; rule: a join has two tokens or more; cure: use the "
                           "token itself, or make_token",
                           tokens.size() == 0 ? "no token" : "1 token"),
               site);
  }
  const bool accesses = std::any_of(tokens.begin(), tokens.end(), [&](const Token& token) {
    return operations_[token.id_].accesses;
  });
  return add(std::move(text), accesses, site);
}

Token TokenProgram::record(tile::TokenAccess access, const TokenUse& use, std::string_view type,
                           unsigned values, bool masked, Site site) {
  if (std::string mistake = tile::order_mistake(access, use.order, use.scope); !mistake.empty()) {
    k_->refuse("tokens", std::move(mistake), site);
  }
  if (use.after != nullptr) check_token(*use.after, site);
  const std::size_t id = operations_.size();
  std::string definitions = format_text("%p{} : ptr<{}>\n", id, type);
  std::string operands = format_text("%p{}", id);
  for (unsigned i = 0; i < values; ++i) {
    definitions += format_text("%a{}_{} : {}\n", id, i, type);
    operands += format_text(", %a{}_{}", id, i);
  }
  const bool reduces = access == tile::TokenAccess::Reduce;
  const bool gives = access != tile::TokenAccess::Store && !reduces;
  std::string text = format_text(
      "{}{}%t{} = {}{} {} {}", definitions, gives ? format_text("%v{}, ", id) : std::string(), id,
      tile::to_string(access), access == tile::TokenAccess::Rmw || reduces ? " add" : "", operands,
      tile::to_string(use.order));
  if (use.scope != TokenScope::None) text += format_text(" {}", tile::to_string(use.scope));
  if (use.after != nullptr) text += format_text(" after %t{}", use.after->id_);
  if (masked && access == tile::TokenAccess::Load) {
    text =
        format_text("%m{} : i1\n%z{} : {}\n{} mask %m{} padding %z{}", id, id, type, text, id, id);
  } else if (masked) {
    text = format_text("%m{} : i1\n{} mask %m{}", id, text, id);
  }
  if (use.after != nullptr && operations_[use.after->id_].accesses) order_threads(site);
  return add(std::move(text), true, site);
}

std::string TokenProgram::text() const {
  std::string text;
  for (const Operation& operation : operations_) {
    text += operation.text;
    if (operation.site.known()) {
      text += format_text("  # {}:{}", operation.site.file, operation.site.line);
    }
    text += "\n";
  }
  return text;
}

}  // namespace ptxgen::inline v0
