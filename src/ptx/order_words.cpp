// src/ptx/order_words.cpp - memory orders and scopes that do not go together
#include "ptx/order_words.hpp"

#include <algorithm>
#include <vector>

#include "ptxgen/ptx/ops.hpp"

namespace ptxgen::inline v0::ptx {

namespace {

bool admits(const ModifierSlot& slot, Modifier word) {
  const auto legal = words(slot);
  return word != Modifier::none && std::find(legal.begin(), legal.end(), word) != legal.end();
}

const ModifierSlot* slot_of(const OpInfo& row, Field field) {
  for (const ModifierSlot& slot : row.modifier_slots()) {
    if (slot.field == field) return &slot;
  }
  return nullptr;
}

bool begins_with_order(const OpInfo& row) {
  return row.slot_count != 0 && row.slots[0].field == Field::Order;
}

/// Every word that some row of the table has in such a place.
bool is_word_of(Field field, Modifier word) {
  for (const OpInfo& row : op_table()) {
    const ModifierSlot* slot = slot_of(row, field);
    if (slot != nullptr && admits(*slot, word)) return true;
  }
  return false;
}

void add_once(std::vector<Modifier>& list, Modifier word) {
  if (std::find(list.begin(), list.end(), word) == list.end()) list.push_back(word);
}

std::string dotted(std::string_view word) { return "." + std::string(word); }

std::string listed(const std::vector<Modifier>& list) {
  std::string text;
  for (std::size_t i = 0; i < list.size(); ++i) {
    text += i == 0 ? "" : i + 1 == list.size() ? " and " : ", ";
    text += dotted(name(list[i]));
  }
  return text;
}

/// What a scope is called elsewhere.
std::string_view scope_of_other_name(std::string_view word) {
  if (word == "block" || word == "thread_block") return "cta";
  if (word == "device") return "gpu";
  if (word == "system") return "sys";
  return {};
}

class Check {
 public:
  Check(std::string_view mnemonic, std::span<const std::string_view> opcode)
      : mnemonic_(mnemonic), opcode_(opcode) {
    for (const Op op : ops_with_mnemonic(mnemonic)) {
      const OpInfo& row = info(op);
      if (!begins_with_order(row)) continue;
      rows_.push_back(&row);
      for (const Modifier word : words(row.slots[0])) add_once(orders_, word);
      if (const ModifierSlot* slot = slot_of(row, Field::Scope)) {
        for (const Modifier word : words(*slot)) add_once(scopes_, word);
      }
    }
  }

  OrderFault run() {
    if (rows_.empty() || another_form()) return {};
    for (const std::string_view text : opcode_) {
      const Modifier word = modifier_from_text(text);
      if (is_word_of(Field::Order, word)) given_orders_.push_back(word);
      if (is_word_of(Field::Scope, word)) given_scopes_.push_back(word);
    }
    if (given_orders_.size() > 1) return two_orders();
    const OrderFault unknown = unknown_word();
    if (unknown.found()) return unknown;
    return given_orders_.empty() ? without_order() : with_order(given_orders_[0]);
  }

 private:
  // `red.async`, `fence.proxy`, `ld.mmio`: a word that is always there in another form.
  bool another_form() const {
    for (const Op op : ops_with_mnemonic(mnemonic_)) {
      for (const ModifierSlot& slot : info(op).modifier_slots()) {
        const bool fixed = slot.field == Field::Literal;
        for (const std::string_view text : opcode_) {
          const Modifier word = modifier_from_text(text);
          if (word == Modifier::mmio) return true;
          if (fixed && admits(slot, word) && !is_word_of(Field::Order, word)) return true;
        }
      }
    }
    return false;
  }

  OrderFault two_orders() const {
    return {"'" + std::string(mnemonic_) + "' has two orders, " + listed(given_orders_),
            "an access or a fence has one order", "keep one of them"};
  }

  // An order stands in front, a scope behind it: a word there that nobody knows was meant so.
  OrderFault unknown_word() const {
    if (opcode_.empty()) return {};
    const auto unknown = [&](std::string_view text) {
      return std::none_of(rows_.begin(), rows_.end(), [&](const OpInfo* row) {
        const auto slots = row->modifier_slots();
        return std::any_of(slots.begin(), slots.end(), [&](const ModifierSlot& slot) {
          return admits(slot, modifier_from_text(text));
        });
      });
    };
    if (given_orders_.empty() && !given_scopes_.empty() && unknown(opcode_[0])) {
      return {"there is no memory order " + dotted(opcode_[0]) + "; '" + std::string(mnemonic_) +
                  "' has " + listed(orders_),
              "the orders are those of the PTX memory model", "name one of them"};
    }
    if (given_orders_.empty() || !given_scopes_.empty()) return {};
    for (std::size_t i = 1; i < opcode_.size(); ++i) {
      if (modifier_from_text(opcode_[i - 1]) != given_orders_[0] || !unknown(opcode_[i])) continue;
      const std::string_view meant = scope_of_other_name(opcode_[i]);
      return {"there is no scope " + dotted(opcode_[i]) + "; there are " + listed(scopes_),
              "an order holds between the threads of a scope",
              meant.empty() ? "name the smallest one that holds all threads that take part"
                            : "write " + dotted(meant)};
    }
    return {};
  }

  OrderFault needs_scope(const std::string& opcode) const {
    return {"'" + opcode + "' needs a scope: one of " + listed(scopes_),
            "an order holds between the threads of a scope",
            "name the smallest one that holds all threads that take part"};
  }

  OrderFault without_order() const {
    bool takes_scope = false;
    bool goes_without = false;
    for (const OpInfo* row : rows_) {
      if (!row->slots[0].optional) continue;
      const ModifierSlot* scope = slot_of(*row, Field::Scope);
      takes_scope = takes_scope || scope != nullptr;
      goes_without = goes_without || scope == nullptr || scope->optional;
    }
    if (given_scopes_.empty()) {
      return goes_without ? OrderFault{} : needs_scope(std::string(mnemonic_));
    }
    if (takes_scope) return {};
    return {"'" + std::string(mnemonic_) + "' has the scope " + dotted(name(given_scopes_[0])) +
                " and no order",
            "without an order an access is weak: it is ordered with no other thread",
            "say .relaxed or stronger, or leave the scope out"};
  }

  OrderFault with_order(Modifier order) const {
    bool takes_scope = false;
    bool goes_without = false;
    bool known = false;
    for (const OpInfo* row : rows_) {
      if (!admits(row->slots[0], order)) continue;
      known = true;
      const ModifierSlot* scope = slot_of(*row, Field::Scope);
      takes_scope = takes_scope || scope != nullptr;
      goes_without = goes_without || scope == nullptr || scope->optional;
    }
    if (!known) return wrong_order(order);
    const std::string opcode = std::string(mnemonic_) + dotted(name(order));
    if (!given_scopes_.empty() && !takes_scope) {
      return {
          "'" + opcode + "' takes no scope, and " + dotted(name(given_scopes_[0])) + " is given",
          order == Modifier::weak ? "a weak access is ordered with no other thread, near or far"
                                  : "a volatile access is as wide as the system",
          "leave the scope out, or make the access .relaxed"};
    }
    return given_scopes_.empty() && !goes_without ? needs_scope(opcode) : OrderFault{};
  }

  bool any(Flag flag) const {
    return std::any_of(rows_.begin(), rows_.end(),
                       [&](const OpInfo* row) { return has(row->flags, flag); });
  }

  OrderFault wrong_order(Modifier order) const {
    const std::string op(mnemonic_);
    OrderFault fault{
        "'" + op + "' cannot be " + dotted(name(order)) + "; it has " + listed(orders_), {}, {}};
    const bool reads = any(Flag::ReadsMemory);
    const bool writes = any(Flag::WritesMemory);
    const bool releases = order == Modifier::release || order == Modifier::acq_rel;
    if (order == Modifier::sc) {
      fault.rule = "only a fence is sequentially consistent";
      fault.cure = "put fence.sc in front of it";
    } else if (!reads && !writes) {
      fault.rule = "a fence that orders nothing is none";
      fault.cure = "use .acq_rel, or .sc";
    } else if (order == Modifier::weak || order == Modifier::volatile_) {
      fault.rule = "an atomic operation is made for threads that meet";
      fault.cure = "use .relaxed";
    } else if (releases && !writes) {
      fault.rule =
          "a release puts what came before it in front of a write, and '" + op + "' writes nothing";
      fault.cure = "use .acquire, or put fence.acq_rel before the write that others wait for";
    } else if (!reads) {
      fault.rule =
          "an acquire puts what comes after it behind a read, and '" + op + "' reads nothing";
      fault.cure = "use .release, or put fence.acq_rel behind the read that waits";
    } else {
      fault.rule = "an acquire begins with the value that was read, and '" + op + "' gives none";
      fault.cure = "use atom, or put fence.acq_rel behind it";
    }
    return fault;
  }

  std::string_view mnemonic_;
  std::span<const std::string_view> opcode_;
  std::vector<const OpInfo*> rows_;
  std::vector<Modifier> orders_, scopes_;
  std::vector<Modifier> given_orders_, given_scopes_;
};

}  // namespace

OrderFault order_fault(std::string_view mnemonic, std::span<const std::string_view> words) {
  return Check(mnemonic, words).run();
}

OrderFault order_fault(std::string_view opcode) {
  std::vector<std::string_view> words;
  for (std::size_t at = 0; at <= opcode.size();) {
    const std::size_t end = std::min(opcode.find('.', at), opcode.size());
    words.push_back(opcode.substr(at, end - at));
    at = end + 1;
  }
  return order_fault(words[0], std::span(words).subspan(1));
}

}  // namespace ptxgen::inline v0::ptx
