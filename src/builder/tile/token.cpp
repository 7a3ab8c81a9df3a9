// src/builder/tile/token.cpp - memory operations ordered by tokens
#include "ptxgen/builder/token.hpp"

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

Token TokenProgram::add(std::string text, Site site) {
  const auto id = static_cast<std::uint32_t>(operations_.size());
  operations_.push_back({std::move(text), site});
  return {this, id};
}

void TokenProgram::check_token(const Token& token, Site site) {
  if (token.program_ == this) return;
  k_->refuse("tokens",
             "a token of another program; rule: tokens order the operations of one kernel; cure: "
             "take a token that this program gave",
             site);
}

Token TokenProgram::make_token(Site site) {
  return add(format_text("%t{} = make_token", operations_.size()), site);
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
  return add(std::move(text), site);
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
  const bool gives = access != tile::TokenAccess::Store;
  std::string text = format_text(
      "{}{}%t{} = {}{} {} {}", definitions, gives ? format_text("%v{}, ", id) : std::string(), id,
      tile::to_string(access), access == tile::TokenAccess::Rmw ? " add" : "", operands,
      tile::to_string(use.order));
  if (use.scope != TokenScope::None) text += format_text(" {}", tile::to_string(use.scope));
  if (use.after != nullptr) text += format_text(" after %t{}", use.after->id_);
  if (masked) {
    text =
        format_text("%m{} : i1\n%z{} : {}\n{} mask %m{} padding %z{}", id, id, type, text, id, id);
  }
  return add(std::move(text), site);
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
