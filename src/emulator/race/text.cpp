// src/emulator/race/text.cpp - what the findings about races say
#include <optional>
#include <string>

#include "emulator/race/detail.hpp"
#include "support/count.hpp"

namespace ptxgen::inline v0::emulator {
namespace {

std::string verb(Mark mark, bool past) {
  switch (mark) {
    case Mark::WeakRead:
      return past ? "read" : "reads";
    case Mark::WeakWrite:
      return past ? "wrote" : "writes";
    case Mark::StrongRead:
      return past ? "read (volatile, relaxed or acquire)" : "reads (volatile, relaxed or acquire)";
    case Mark::StrongWrite:
      return past ? "changed (atomic, volatile or relaxed)"
                  : "changes (atomic, volatile or relaxed)";
  }
  return {};
}

std::string scope_name(ptx::Modifier scope) {
  return scope == ptx::Modifier::none ? std::string("gpu") : std::string(ptx::name(scope));
}

std::string cure(const Conflict& conflict) {
  if (conflict.rule == Rule::ScopeTooNarrow) {
    return "use .gpu (or .sys) where threads of different blocks meet";
  }
  if (conflict.bulk) {
    return "let every thread that touches the bytes wait for the mbarrier of the copy, or put "
           "bar.sync 0 between the thread that does and the others";
  }
  if (conflict.async) {
    return "wait for the copy (cp.async.wait_group, cp.async.wait_all or its mbarrier) before its "
           "bytes are touched, and put bar.sync 0 behind that for the other threads";
  }
  if (conflict.same_access) {
    return conflict.rule == Rule::RaceSameValue ? "let one thread write it"
                                                : "let one thread write it, or use an atomic";
  }
  if (conflict.mixed) {
    return "let all atomic, volatile and relaxed accesses to these bytes have one width: those "
           "that "
           "overlap in part only race as plain ones do";
  }
  std::string text;
  if (is_strong(conflict.mine) != is_strong(conflict.theirs)) {
    text = "make both of them atomic or relaxed, or ";
  }
  if (!conflict.same_block && conflict.shared) {
    return text +
           "put a barrier of the cluster between them (barrier.cluster.arrive and .wait), or let "
           "the second wait for an mbarrier at which the first arrives";
  }
  if (!conflict.same_block) {
    return text +
           "let a fence.acq_rel.gpu and an atomic or relaxed flag lie between them (a fence before "
           "the flag is stored and one after it is read), or make two launches of it";
  }
  return text + (conflict.same_warp
                     ? "put bar.warp.sync with both lanes in its mask (or bar.sync 0) between them"
                     : "put bar.sync 0 between them");
}

/// A plain read of what another thread changes by an atomic or volatile access gives the old or the
/// new value on every GPU; loops around atomicCAS begin with one. Data that it is to guard race by
/// themselves.
std::optional<Severity> severity_of(const Conflict& conflict) {
  const auto is = [&](Mark one, Mark other) {
    return (conflict.mine == one && conflict.theirs == other) ||
           (conflict.mine == other && conflict.theirs == one);
  };
  if (conflict.rule != Rule::GlobalRace || conflict.mixed) return std::nullopt;
  if (!is(Mark::WeakRead, Mark::StrongWrite)) return std::nullopt;
  return Severity::Warning;
}

}  // namespace

FindingText race_text(const Conflict& conflict, std::string_view thread,
                      std::string_view other_thread, std::string_view other_place,
                      std::string_view name) {
  std::string where = count_text(conflict.bytes, "byte") +
                      (conflict.shared ? " at shared offset " : " at ") + hex(conflict.address);
  if (!name.empty()) where += " (" + std::string(name) + ")";
  const std::string place = other_place.empty() ? std::string() : " " + std::string(other_place);
  std::string message;
  if (conflict.rule == Rule::ExitedBlock) {
    message = std::string(thread) + " " + verb(conflict.mine, false) + " " + where +
              "; nothing keeps that block, which left the kernel" + place + ", from leaving before";
    return {std::move(message),
            {"let all blocks of the cluster meet (barrier.cluster.arrive and .wait) after the last "
             "access to each other's memory and before the first of them leaves"}};
  }
  if (conflict.rule == Rule::ScopeTooNarrow) {
    message = "scope ." + scope_name(conflict.scope) + " of " + std::string(thread) +
              " does not hold " + std::string(other_thread) + place + ", and " + where +
              " need the two to be in one scope";
  } else {
    message = std::string(thread) + " " + verb(conflict.mine, false) + " " + where + ", which ";
    if (conflict.vague) {
      // Who they are is not kept, but that there is another one than the writer.
      return {message + "several threads " + verb(conflict.theirs, true) + place + ", " +
                  std::string(other_thread) + " the first of them; nothing orders the two accesses",
              {cure(conflict)},
              {},
              severity_of(conflict)};
    }
    message += std::string(other_thread) + " ";
    if (conflict.same_access) {
      message += conflict.rule == Rule::RaceSameValue
                     ? "writes with the same instruction, the same value"
                     : "writes with the same instruction, another value";
    } else if (conflict.rule == Rule::RaceSameValue) {
      message += verb(conflict.theirs, true) + place + ", the same value; nothing orders the two";
    } else if (conflict.bulk) {
      message += verb(conflict.theirs, true) + place +
                 " by a bulk copy; this thread has not waited for its mbarrier";
    } else if (conflict.async) {
      message += verb(conflict.theirs, true) + place +
                 "; one of the two is an asynchronous copy that nobody has waited for";
    } else {
      message += verb(conflict.theirs, true) + place;
      if (conflict.mixed) message += " with another width";
      message += "; nothing orders the two";
    }
  }
  return {std::move(message), {cure(conflict)}, {}, severity_of(conflict)};
}

}  // namespace ptxgen::inline v0::emulator
