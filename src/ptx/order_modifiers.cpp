// src/ptx/order_modifiers.cpp - illegal combinations of memory orders and scopes
#include "ptx/order_modifiers.hpp"

#include <algorithm>
#include <vector>

#include "ptx/row_shape.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::ptx {

namespace {

const ModifierSlot* slot_of(const OpInfo& row, Field field) {
  for (const ModifierSlot& slot : row.modifier_slots()) {
    if (slot.field == field) return &slot;
  }
  return nullptr;
}

bool begins_with_order(const OpInfo& row) {
  return row.slot_count != 0 && row.slots[0].field == Field::Order;
}

/// Every modifier that some row of the table has in such a place.
bool is_modifier_of(Field field, Modifier modifier) {
  for (const OpInfo& row : op_table()) {
    const ModifierSlot* slot = slot_of(row, field);
    if (slot != nullptr && allows(*slot, modifier)) return true;
  }
  return false;
}

void add_once(std::vector<Modifier>& list, Modifier modifier) {
  if (std::find(list.begin(), list.end(), modifier) == list.end()) list.push_back(modifier);
}

std::string dotted(std::string_view modifier) { return "." + std::string(modifier); }

std::string listed(const std::vector<Modifier>& list) {
  std::string text;
  for (std::size_t i = 0; i < list.size(); ++i) {
    text += i == 0 ? "" : i + 1 == list.size() ? " and " : ", ";
    text += dotted(name(list[i]));
  }
  return text;
}

/// What a scope is called elsewhere.
std::string_view scope_of_other_name(std::string_view modifier) {
  if (modifier == "block" || modifier == "thread_block") return "cta";
  if (modifier == "device") return "gpu";
  if (modifier == "system") return "sys";
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
      for (const Modifier modifier : allowed_modifiers(row.slots[0])) add_once(orders_, modifier);
      if (const ModifierSlot* slot = slot_of(row, Field::Scope)) {
        for (const Modifier modifier : allowed_modifiers(*slot)) add_once(scopes_, modifier);
      }
    }
  }

  OrderFault run() {
    if (rows_.empty() || another_form()) return {};
    for (const std::string_view text : opcode_) {
      const Modifier modifier = modifier_from_text(text);
      if (is_modifier_of(Field::Order, modifier)) given_orders_.push_back(modifier);
      if (is_modifier_of(Field::Scope, modifier)) given_scopes_.push_back(modifier);
    }
    if (given_orders_.size() > 1) return two_orders();
    const OrderFault unknown = unknown_modifier();
    if (unknown.found()) return unknown;
    return given_orders_.empty() ? without_order() : with_order(given_orders_[0]);
  }

 private:
  // `red.async`, `fence.proxy`, `ld.mmio`: a modifier that is always there in another form.
  bool another_form() const {
    for (const Op op : ops_with_mnemonic(mnemonic_)) {
      for (const ModifierSlot& slot : info(op).modifier_slots()) {
        const bool fixed = slot.field == Field::Literal;
        for (const std::string_view text : opcode_) {
          const Modifier modifier = modifier_from_text(text);
          if (modifier == Modifier::mmio) return true;
          if (fixed && allows(slot, modifier) && !is_modifier_of(Field::Order, modifier))
            return true;
        }
      }
    }
    return false;
  }

  OrderFault two_orders() const {
    return {format_text("'{}' has two orders, {}", mnemonic_, listed(given_orders_)),
            "an access or a fence has one order", "keep one of them"};
  }

  // The order comes first, then the scope. An unknown modifier there was meant as such.
  OrderFault unknown_modifier() const {
    if (opcode_.empty()) return {};
    const auto unknown = [&](std::string_view text) {
      return std::none_of(rows_.begin(), rows_.end(), [&](const OpInfo* row) {
        const auto slots = row->modifier_slots();
        return std::any_of(slots.begin(), slots.end(), [&](const ModifierSlot& slot) {
          return allows(slot, modifier_from_text(text));
        });
      });
    };
    if (given_orders_.empty() && !given_scopes_.empty() && unknown(opcode_[0])) {
      return {format_text("there is no memory order .{}; '{}' has {}", opcode_[0], mnemonic_,
                          listed(orders_)),
              "the orders are those of the PTX memory model", "name one of them"};
    }
    if (given_orders_.empty() || !given_scopes_.empty()) return {};
    for (std::size_t i = 1; i < opcode_.size(); ++i) {
      if (modifier_from_text(opcode_[i - 1]) != given_orders_[0] || !unknown(opcode_[i])) continue;
      const std::string_view meant = scope_of_other_name(opcode_[i]);
      return {format_text("there is no scope .{}; there are {}", opcode_[i], listed(scopes_)),
              "an order holds between the threads of a scope",
              meant.empty() ? "name the smallest scope that contains all participating threads"
                            : "write " + dotted(meant)};
    }
    return {};
  }

  OrderFault needs_scope(const std::string& opcode) const {
    return {format_text("'{}' needs a scope: one of {}", opcode, listed(scopes_)),
            "an order holds between the threads of a scope",
            "name the smallest scope that contains all participating threads"};
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
    return {format_text("'{}' has the scope .{} and no order", mnemonic_, name(given_scopes_[0])),
            "without an order an access is weak: it is not ordered with other threads",
            "use .relaxed or stronger, or omit the scope"};
  }

  OrderFault with_order(Modifier order) const {
    bool takes_scope = false;
    bool goes_without = false;
    bool known = false;
    for (const OpInfo* row : rows_) {
      if (!allows(row->slots[0], order)) continue;
      known = true;
      const ModifierSlot* scope = slot_of(*row, Field::Scope);
      takes_scope = takes_scope || scope != nullptr;
      goes_without = goes_without || scope == nullptr || scope->optional;
    }
    if (!known) return wrong_order(order);
    const std::string opcode = std::string(mnemonic_) + dotted(name(order));
    if (!given_scopes_.empty() && !takes_scope) {
      return {format_text("'{}' takes no scope, but has .{}", opcode, name(given_scopes_[0])),
              order == Modifier::weak ? "a weak access is not ordered with other threads"
                                      : "a volatile access has system scope",
              "omit the scope, or use .relaxed"};
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
        format_text("'{}' cannot be .{}; it has {}", op, name(order), listed(orders_)), {}, {}};
    const bool reads = any(Flag::ReadsMemory);
    const bool writes = any(Flag::WritesMemory);
    const bool releases = order == Modifier::release || order == Modifier::acq_rel;
    if (order == Modifier::sc) {
      fault.rule = "only a fence is sequentially consistent";
      fault.cure = "put fence.sc before it";
    } else if (!reads && !writes) {
      fault.rule = "a fence must order something";
      fault.cure = "use .acq_rel, or .sc";
    } else if (order == Modifier::weak || order == Modifier::volatile_) {
      fault.rule = "an atomic operation is visible to other threads";
      fault.cure = "use .relaxed";
    } else if (releases && !writes) {
      fault.rule = format_text(
          "a release orders earlier accesses before a write, and '{}' writes nothing", op);
      fault.cure = "use .acquire, or put fence.acq_rel before the write that others wait for";
    } else if (!reads) {
      fault.rule =
          format_text("an acquire orders later accesses after a read, and '{}' reads nothing", op);
      fault.cure = "use .release, or put fence.acq_rel after the read that waits";
    } else {
      fault.rule =
          format_text("an acquire needs the value that was read, and '{}' returns none", op);
      fault.cure = "use atom, or put fence.acq_rel after it";
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

OrderFault order_fault(std::string_view mnemonic, std::span<const std::string_view> modifiers) {
  return Check(mnemonic, modifiers).run();
}

OrderFault order_fault(std::string_view opcode) {
  std::vector<std::string_view> modifiers;
  for (std::size_t at = 0; at <= opcode.size();) {
    const std::size_t end = std::min(opcode.find('.', at), opcode.size());
    modifiers.push_back(opcode.substr(at, end - at));
    at = end + 1;
  }
  return order_fault(modifiers[0], std::span(modifiers).subspan(1));
}

}  // namespace ptxgen::inline v0::ptx
