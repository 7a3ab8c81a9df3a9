// src/optimize/tokens/tokens.cpp - the pass that removes barriers that order nothing more
#include <algorithm>

#include "optimize/edits.hpp"
#include "optimize/function_facts.hpp"
#include "optimize/tokens/barrier_search.hpp"
#include "ptxgen/optimize/passes.hpp"
#include "ptxgen/ptx/printer.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::optimize {

using namespace ptx;

namespace {

bool is_sync(const Instruction& s) { return s.is(Op::bar_sync) || s.is(Op::barrier_sync); }

class BarrierRemover {
 public:
  BarrierRemover(Function& function, PassContext& context)
      : function_(function),
        context_(context),
        barriers_(context.facts(function)),
        search_(context.facts(function), barriers_) {}

  void run() {
    for (const OtherBarrier& other : barriers_.others()) refuse(other);
    const std::vector<bool>& removed = search_.run();
    Edits edits(context_.module(), function_);
    const std::vector<bool> all(removed.size(), true);
    for (std::uint32_t i = 0; i < removed.size(); ++i) {
      const BlockBarrier& barrier = barriers_.all()[i];
      if (!barrier.removable) continue;
      if (removed[i]) {
        say_removed(i, all);
        edits.erase(barrier.statement);
      } else {
        say_kept(i, removed);
      }
    }
    if (edits.empty()) return;
    edits.apply();
    context_.changed();
  }

 private:
  void refuse(const OtherBarrier& other) {
    std::string message;
    if (context_.explains()) {
      message = format_text("{} stays: {}", text(other.statement), rule(other.reason));
    }
    context_.decide(function_, other.statement, false, other.reason, std::move(message));
  }

  static std::string_view rule(std::string_view reason) {
    if (reason == "number-unknown") return "its number is not a constant";
    if (reason == "counted") return "it counts its threads, and may order some of the block";
    if (reason == "guarded") return "it is guarded";
    if (reason == "divergent") return "threads of the block may not all reach it";
    if (reason == "device-function") return "what its callers access is not known";
    return "another barrier of its number is guarded, divergent, counted or of unknown number";
  }

  void say_removed(std::uint32_t barrier, const std::vector<bool>& all) {
    const std::uint32_t statement = barriers_.all()[barrier].statement;
    const std::optional<OrderedPair> pair = search_.unordered(barrier, all);
    if (!pair) {
      context_.decide(function_, statement, true, "orders-nothing",
                      context_.explains() ? format_text("{} is removed: no two threads access "
                                                        "before and after it what conflicts",
                                                        text(statement))
                                          : std::string());
      return;
    }
    std::string message;
    const std::uint32_t other = search_.orderer(*pair);
    if (context_.explains()) {
      message = format_text(
          "{} is removed: what it orders is ordered without it; {} stays before "
          "{}",
          text(statement), quote(pair->first), quote(pair->second));
      if (other != kNone) message += " by " + quote(barriers_.all()[other].statement);
    }
    context_.decide(function_, statement, true, "ordered-elsewhere", std::move(message),
                    other == kNone ? kNone : barriers_.all()[other].statement);
  }

  void say_kept(std::uint32_t barrier, const std::vector<bool>& removed) {
    const std::uint32_t statement = barriers_.all()[barrier].statement;
    const std::optional<OrderedPair> pair = search_.unordered(barrier, removed);
    // The search has tried each barrier without the others that it removed.
    if (!pair) return;
    std::string message;
    if (context_.explains()) {
      message = format_text("{} stays: it orders {} before {}{}", text(statement),
                            quote(pair->first), quote(pair->second), cause(pair->conflict));
    }
    context_.decide(function_, statement, false, pair->conflict.reason, std::move(message),
                    pair->second);
  }

  static std::string cause(const Conflict& conflict) {
    const auto thread = [](const std::array<std::uint32_t, 3>& t) {
      return format_text("({},{},{})", t[0], t[1], t[2]);
    };
    if (conflict.reason == "conflict") {
      return format_text(": threads {} and {} access the same bytes", thread(conflict.first),
                         thread(conflict.second));
    }
    if (conflict.reason == "may-conflict") return ": they may access the same bytes";
    if (conflict.reason == "acquire") return ", and an acquire stays before what follows it";
    if (conflict.reason == "release") return ", and a release stays after what precedes it";
    if (conflict.reason == "other-blocks") return ", of which one may order blocks";
    return ", of which one is ordered with everything";
  }

  [[nodiscard]] std::string text(std::uint32_t statement) const {
    std::string text = print(context_.module(), function_, function_.body[statement]);
    if (text.ends_with(';')) text.pop_back();
    return "'" + text + "'";
  }
  [[nodiscard]] std::string quote(std::uint32_t statement) const {
    const Instruction& s = function_.body[statement];
    if (s.line != 0) return format_text("{} in line {}", text(statement), s.line);
    const SourceLocation site = context_.module().site_of(s);
    if (!site.known()) return text(statement);
    std::string_view file = site.file;
    file.remove_prefix(file.find_last_of("/\\") + 1);  // npos + 1 is 0
    return format_text("{} at {}:{}", text(statement), file, site.line);
  }

  Function& function_;
  PassContext& context_;
  BlockBarriers barriers_;
  BarrierSearch search_;
};

}  // namespace

void tokens(Function& function, PassContext& context) {
  context.visit(function.body.size());
  if (std::any_of(function.body.begin(), function.body.end(), is_sync))
    BarrierRemover(function, context).run();
}

}  // namespace ptxgen::inline v0::optimize
